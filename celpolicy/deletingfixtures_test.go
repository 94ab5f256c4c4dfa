package celpolicy_test

import (
	"encoding/json"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/fixtures"
	"github.com/kvap/kvap/internal/judge"
	"github.com/kvap/kvap/interp"
	"github.com/kvap/kvap/policy"
	kinds "github.com/kvap/kvap/schema"
)

// asCleanups are the rules of a policy as cleanup policies, by their match, exclude, context and
// conditions.
func asCleanups(text []byte) (out []string) {
	file, _ := policy.Parse("policy.yaml", []byte(strings.ReplaceAll(string(text), "request.object", "target")))
	for _, p := range file.Policies {
		for _, r := range p.Rules {
			if r.Source == nil || r.Source.Get("match") == nil {
				continue
			}
			for _, conditions := range []*policy.Node{r.Source.Get("preconditions"), r.Source.Get("validate").Get("deny").Get("conditions")} {
				if conditions == nil {
					continue
				}
				spec := ""
				for _, part := range []struct {
					key string
					of  *policy.Node
				}{{"match", r.Source.Get("match")}, {"exclude", r.Source.Get("exclude")}, {"context", r.Source.Get("context")}, {"conditions", conditions}} {
					if part.of != nil {
						spec += part.key + ":\n  " + strings.ReplaceAll(string(policy.Marshal(part.of)), "\n", "\n  ") + "\n"
					}
				}
				out = append(out, cleanupPolicy("ClusterCleanupPolicy", spec))
			}
		}
	}
	return out
}

// The conditions of the fixtures' rules delete the same objects in both forms.
func TestCleanupsOfFixtures(t *testing.T) {
	made, judged, deleted := 0, 0, 0
	schemas, err := kinds.Builtin(cel.Latest.String())
	if err != nil {
		t.Fatal(err)
	}
	schemas = schemas.WithPublished()
	for _, f := range fixtures.All() {
		if f.Cases == nil {
			continue
		}
		cases, err := fixtures.ParseCases(f.Cases)
		if err != nil {
			t.Fatal(err)
		}
		for _, text := range asCleanups(f.Policy) {
			if _, found := policy.Parse("policy.yaml", []byte(text)); found.HasErrors() {
				continue // such as ConfigMaps and users, which no cleanup policy knows
			}
			world := judge.World(contextOf(t, f), schemas)
			for _, one := range cleanedBy(t, text, schemas) {
				if one.Left != nil {
					continue
				}
				made++
				before := interp.NewCleanup(one.Of, nil, world, interp.Limits{})
				after, written := read(t, one, world)
				for _, x := range cases {
					resource, o := objectOf(t, x)
					if o == nil {
						continue
					}
					want, wrong := before.Deletes(t.Context(), resource, o)
					got := false
					for _, d := range after {
						deletes, err := d.Deletes(t.Context(), resource, o)
						got = got || deletes
						if err != nil && wrong == nil {
							t.Errorf("%s: %s: there is an error: %v\n%s\n%s", f.Name, x.Note, err, text, written)
						}
					}
					judged++
					if want {
						deleted++
					}
					if got != want {
						t.Errorf("%s: %s: got %t, want %t (%v)\n%s\n%s", f.Name, x.Note, got, want, wrong, text, written)
					}
				}
			}
		}
	}
	t.Logf("%d cleanup policies, %d objects, %d of them deleted", made, judged, deleted)
	if made < 30 || deleted < 100 {
		t.Errorf("there are %d cleanup policies, which delete %d of %d objects", made, deleted, judged)
	}
}

// objectOf is the object that a case is about, with its resource; nil where that is a subresource,
// or nothing.
func objectOf(t *testing.T, x fixtures.Case) (schema.GroupVersionResource, map[string]any) {
	t.Helper()
	data, err := x.Request()
	if err != nil {
		t.Fatal(err)
	}
	var request admissionv1.AdmissionRequest
	if err := json.Unmarshal(data, &request); err != nil {
		t.Fatal(err)
	}
	var object map[string]any
	if request.SubResource != "" || len(request.Object.Raw) == 0 {
		return schema.GroupVersionResource{}, nil
	}
	admission, err := interp.ParseAdmission(data)
	if err != nil {
		t.Fatal(err)
	}
	object, _ = admission["object"].(map[string]any)
	return schema.GroupVersionResource{Group: request.Resource.Group, Version: request.Resource.Version, Resource: request.Resource.Resource}, object
}
