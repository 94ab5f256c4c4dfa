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
		"/api/v1/namespaces/team/configmaps/c":                   answer,
		"/api/v1/namespaces/team/configmaps":                     answer,
		"/api/v1/namespaces/team/reviews":                        answer,
		"/api/v1/namespaces/team/configmaps?labelSelector=a%3Db": []byte(`{"items": [{}]}`),
		"/api/v1/namespaces/other/configmaps/c":                  answer,
		"/api/v1/configmaps":                                     answer,
		"/api/v1/namespaces/other":                               answer,
	}, Plural: func(_, kind string) string { return strings.ToLower(kind) + "s" }, Complete: true}
	for expression, message := range map[string]string{
		"resource.Get('v1', 'configmaps', 'c').data.k == 'v'":                "success",
		"resource.get('v1', 'configmaps', 'none').?data.orValue({}) == {}":   "success",
		"resource.List('v1', 'configmaps').items.size() == 0":                "success",
		"resource.list('v1', 'configmaps', {'a': 'b'}).items.size() == 1":    "success",
		"resource.post('v1', 'reviews', {'a': 'b'}).data.k == 'v'":           "success",
		"resource.get(resource.toGVR('v1', 'ConfigMap'), 'c').data.k == 'v'": "success",
		"resource.Get('v1', 'configmaps', 'other', 'c').data.k == 'v'":       "no matching overload",
		"resource.List('v1', 'configmaps', '').items.size() == 0":            "no matching overload",
		"resource.Get('v1', 'namespaces', 'other').data.k == 'v'":            "no such key", // there is none in a namespace
		"resource.Get('v1', 'configmaps', '../other').data.k == 'v'":         "only paths below",
		"http.get('https://service').ok == true":                             "undeclared reference",
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
		if len(got) == 0 || !strings.Contains(got[0].Message, message) {
			t.Errorf("%s: %+v, want %s", expression, got, message)
		}
	}
}
