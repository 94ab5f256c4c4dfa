package interp

import (
	"strings"
	"testing"

	"github.com/kvap/kvap/policy"
)

// A policy of a namespace asks for what is in that namespace, and nothing else.
func TestNamespacedValidatingStaysInItsNamespace(t *testing.T) {
	answer := []byte(`{"data": {"k": "v"}, "items": []}`)
	world := &Offline{Answers: map[string][]byte{
		"/api/v1/namespaces/team/configmaps/c":  answer,
		"/api/v1/namespaces/other/configmaps/c": answer,
		"/api/v1/configmaps":                    answer,
		"/api/v1/namespaces/other":              answer,
	}}
	for expression, want := range map[string]Status{
		"resource.Get('v1', 'configmaps', 'team', 'c').data.k == 'v'":  Pass,
		"resource.Get('v1', 'configmaps', 'other', 'c').data.k == 'v'": Error,
		"resource.List('v1', 'configmaps', '').items.size() == 0":      Error,
		"resource.Get('v1', 'namespaces', '', 'other').data.k == 'v'":  Error,
	} {
		text := strings.NewReplacer("EXPRESSION", expression).Replace(`
apiVersion: policies.kyverno.io/v1
kind: NamespacedValidatingPolicy
metadata: {name: p, namespace: team}
spec:
  matchConstraints: {resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [pods]}]}
  validations: [{expression: "EXPRESSION"}]
`)
		f, ds := policy.Parse("p.yaml", []byte(text))
		if ds.HasErrors() {
			t.Fatal(ds)
		}
		request := map[string]any{
			"uid": "u", "operation": "CREATE", "namespace": "team", "name": "x",
			"kind":     map[string]any{"group": "", "version": "v1", "kind": "Pod"},
			"resource": map[string]any{"group": "", "version": "v1", "resource": "pods"},
			"object":   map[string]any{"apiVersion": "v1", "kind": "Pod", "metadata": map[string]any{"name": "x", "namespace": "team"}},
		}
		got := New(f.Policies, nil, world, Limits{}).Judge(t.Context(), &Request{Admission: request})
		if len(got) == 0 || got[0].Status != want || want == Error && !strings.Contains(got[0].Message, "only paths below") {
			t.Errorf("%s: %+v, want %s", expression, got, want)
		}
	}
}
