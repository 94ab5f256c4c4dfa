package mutating_test

import (
	"os"
	"testing"

	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/internal/textdiff"
	"github.com/kvap/kvap/mutating"
	"github.com/kvap/kvap/vap"
)

func parsed(t *testing.T, text string) cel.Value {
	t.Helper()
	v, err := cel.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func draft(t *testing.T) *mutating.Draft {
	return &mutating.Draft{
		Draft: vap.Draft{
			Base: "add-team", FailurePolicy: "Ignore", Authored: true,
			Constraints: vap.Constraints{Rules: []vap.ResourceRule{{
				Groups: []string{""}, Versions: []string{"v1"}, Resources: []string{"configmaps"}, Operations: []string{"CREATE", "UPDATE"},
			}}},
			Conditions: []vap.Condition{{Name: "has-team", Expr: parsed(t, "has(object.metadata.labels)").AsBool()}},
			Variables:  []vap.Variable{{Name: "team", Expr: parsed(t, "'a'")}, {Name: "unread", Expr: parsed(t, "'b'")}},
			Bindings:   []vap.Binding{{}},
		},
		Mutations: []mutating.Mutation{
			{Type: mutating.ApplyConfiguration, Expr: parsed(t, `Object{metadata: Object.metadata{labels: {"team": variables.team}}}`)},
			{Type: mutating.JSONPatch, Expr: parsed(t, `[JSONPatch{op: "add", path: "/data", value: {"k": "v"}}]`)},
		},
	}
}

// The objects are those that kubectl apply takes, with what the API server would default.
func TestEmit(t *testing.T) {
	for release, file := range map[cel.Release]string{36: "testdata/v1.yaml", 35: "testdata/v1beta1.yaml"} {
		objects, found := mutating.Emit(draft(t), release, vap.EmitOptions{})
		if len(found) > 0 {
			t.Fatal(found)
		}
		got, err := vap.Marshal(objects.All()...)
		if err != nil {
			t.Fatal(err)
		}
		want, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if d := textdiff.Values(string(want), string(got)); d != "" {
			t.Errorf("%s (-want +got):\n%s", file, d)
		}
	}
}

// Drafts of one name get names of their own.
func TestEmitAll(t *testing.T) {
	objects, _ := mutating.EmitAll([]*mutating.Draft{draft(t), draft(t)}, 36, vap.EmitOptions{Taken: []string{"add-team"}})
	if a, b := objects[0].Policy.Name, objects[1].Bindings[0].Name; a != "add-team-2" || b != "add-team-3" {
		t.Errorf("the names are %s and %s", a, b)
	}
}
