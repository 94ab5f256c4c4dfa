package apiserver

import (
	"encoding/json"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kvap/kvap/internal/textdiff"
	"github.com/kvap/kvap/vap"
)

func TestMembers(t *testing.T) {
	translation := vap.Translation{
		Members:     make([]vap.TranslatedMember, 2),
		Validations: []vap.TranslatedExpression{{Member: 0}, {Member: 1}, {Member: 0}},
	}
	outcomes := func(v Verdict) (out []Outcome) {
		for _, r := range v.Members(translation) {
			out = append(out, r.Outcome)
		}
		return out
	}
	for _, tt := range []struct {
		v    Verdict
		want []Outcome
	}{
		{Verdict{Outcome: NoMatch}, []Outcome{NoMatch, NoMatch}},
		{Verdict{Outcome: Error}, []Outcome{Error, Error}},
		{Verdict{Outcome: Deny, Results: []ValidationResult{{0, "", Allow, "", ""}, {1, "", Error, "", ""}, {2, "", Deny, "", ""}}}, []Outcome{Deny, Error}},
	} {
		if d := textdiff.Values(tt.want, outcomes(tt.v)); d != "" {
			t.Errorf("(-want +got):\n%s", d)
		}
	}
}

// The forms of a rule are about other resources: what an object says is of the form that is
// about the request's.
func TestMembersOfResources(t *testing.T) {
	translation := vap.Translation{
		Members:     []vap.TranslatedMember{{Resources: []string{"pods"}}, {Resources: []string{"deployments", "jobs"}}, {}},
		Validations: []vap.TranslatedExpression{{Member: 0, Also: []int{1}}, {Member: 2}},
	}
	denied := []ValidationResult{{0, "", Deny, "", ""}, {1, "", Allow, "", ""}}
	for _, tt := range []struct {
		v    Verdict
		want []Outcome
	}{
		{Verdict{Resource: "pods", Outcome: Deny, Results: denied}, []Outcome{Deny, NoMatch, Allow}},
		{Verdict{Resource: "jobs", Outcome: Deny, Results: denied}, []Outcome{NoMatch, Deny, Allow}},
		{Verdict{Resource: "jobs", Outcome: Error}, []Outcome{NoMatch, Error, Error}},
	} {
		var got []Outcome
		for _, r := range tt.v.Members(translation) {
			got = append(got, r.Outcome)
		}
		if d := textdiff.Values(tt.want, got); d != "" {
			t.Errorf("%s (-want +got):\n%s", tt.v.Resource, d)
		}
	}
}

func TestCanonical(t *testing.T) {
	for _, tt := range []struct{ name, kind, in, want string }{
		{"quantities", "Pod",
			`{"spec":{"containers":[{"name":"c","resources":{"limits":{"memory":"1024Mi","cpu":0.5}}}]}}`,
			`{"apiVersion":"v1","kind":"Pod","spec":{"containers":[{"name":"c","resources":{"limits":{"cpu":"500m","memory":"1Gi"}}}]}}`},
		{"nothing is added", "Pod",
			`{"metadata":{"name":"a"},"spec":{"containers":[{"name":"c"}]}}`,
			`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a"},"spec":{"containers":[{"name":"c"}]}}`},
		{"what the source has stays", "Pod",
			`{"metadata":{"creationTimestamp":null},"spec":{"containers":[{"name":"c","resources":{}}]},"status":{}}`,
			`{"apiVersion":"v1","kind":"Pod","metadata":{},"spec":{"containers":[{"name":"c","resources":{}}]},"status":{}}`},
		{"unknown and empty fields go", "ConfigMap",
			`{"metadata":{"name":"a","labels":{}},"data":{},"x":1}`,
			`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"}}`},
		{"options are as they are in Go", "PodExecOptions",
			`{"container":"c","stdin":false}`,
			`{"apiVersion":"v1","command":null,"container":"c","kind":"PodExecOptions"}`},
		{"a kind that is not built in", "Widget", `{"x":{},"y":1.5}`, `{"x":{},"y":1.5}`},
		{"of one, empty metadata go", "Widget", `{"metadata":{"name":"a","finalizers":[],"labels":{}},"x":{}}`, `{"metadata":{"name":"a"},"x":{}}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var in map[string]any
			if err := json.Unmarshal([]byte(tt.in), &in); err != nil {
				t.Fatal(err)
			}
			out, err := Canonical(in, schema.GroupVersionKind{Version: "v1", Kind: tt.kind})
			if err != nil {
				t.Fatal(err)
			}
			got, err := json.Marshal(out)
			if err != nil {
				t.Fatal(err)
			}
			if string(got) != tt.want {
				t.Errorf("\ngot  %s\nwant %s", got, tt.want)
			}
		})
	}
	if _, err := Canonical(map[string]any{"spec": "x"}, schema.GroupVersionKind{Version: "v1", Kind: "Pod"}); err == nil {
		t.Error("a spec that is no object: no error")
	}
}

// A field of the wrong type is named, and a word that YAML takes for a boolean too.
func TestCanonicalNamesTheField(t *testing.T) {
	for value, want := range map[any]string{
		true:     "the object is no Pod: spec.containers.image cannot be a bool: y, yes, on, n, no and off without quotes are bools in YAML; put it in quotes",
		int64(5): "the object is no Pod: spec.containers.image cannot be a number; put it in quotes",
	} {
		pod := map[string]any{"spec": map[string]any{"containers": []any{map[string]any{"name": "c", "image": value}}}}
		_, err := Canonical(pod, schema.GroupVersionKind{Version: "v1", Kind: "Pod"})
		if err == nil || err.Error() != want {
			t.Errorf("%v: %v, want %s", value, err, want)
		}
	}
}
