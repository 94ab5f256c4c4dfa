package interp_test

import (
	"strings"
	"testing"

	"github.com/kvap/kvap/internal/textdiff"
	"github.com/kvap/kvap/interp"
	"github.com/kvap/kvap/policy"
)

// existingPolicy has one rule, r, on Secrets of the namespace a.
func existingPolicy(t *testing.T, kind, rest string) *policy.Policy {
	t.Helper()
	f, ds := policy.Parse("p.yaml", []byte(`apiVersion: kyverno.io/v1
kind: `+kind+`
metadata: {name: p, namespace: a}
spec:
  rules:
  - name: r
    match: {any: [{resources: {kinds: [Secret]}}]}
    preconditions: {all: [{key: "{{ request.object.data.go || '' }}", operator: Equals, value: "1"}]}
    mutate:
`+rest))
	if ds.HasErrors() {
		t.Fatal(ds)
	}
	return f.Policies[0]
}

func configMap(namespace, name, labels, data string) string {
	return `{apiVersion: v1, kind: ConfigMap, metadata: {name: ` + name + `, namespace: ` + namespace + `, labels: {` + labels + `}}, data: {` + data + `}}`
}

func secretRequest(t *testing.T, operation, data string) *interp.Request {
	t.Helper()
	var object map[string]any
	readYAML(t, []byte(`{apiVersion: v1, kind: Secret, metadata: {name: s, namespace: a}, data: {`+data+`}}`), &object)
	a := map[string]any{
		"operation": operation, "name": "s", "namespace": "a", "object": object, "oldObject": nil,
		"kind": map[string]any{"group": "", "version": "v1", "kind": "Secret"}, "userInfo": map[string]any{"username": "alice"},
	}
	if operation == "DELETE" {
		a["object"], a["oldObject"] = nil, object
	}
	return &interp.Request{Admission: a, NamespaceLabels: map[string]string{}}
}

func TestMutateExisting(t *testing.T) {
	world := &interp.Offline{}
	for _, text := range []string{
		configMap("a", "one", "pick: it", "k: old"), configMap("a", "two", "", "k: old"), configMap("b", "three", "pick: it", "k: old"),
	} {
		var object map[string]any
		readYAML(t, []byte(text), &object)
		world.Objects = append(world.Objects, object)
	}
	const patch = "      patchStrategicMerge: {data: {k: \"{{ @ }}-{{ request.object.data.v }}-{{ target.metadata.name }}\"}}\n"
	for _, tt := range []struct{ name, kind, rest, want string }{
		{"its own value in a function", "ClusterPolicy", "      targets: [{apiVersion: v1, kind: ConfigMap, namespace: a, name: one}]\n      patchStrategicMerge: {data: {k: \"{{ to_upper('{{@}}') }}\"}}\n", "a/one OLD pass"},
		{"any version by name", "ClusterPolicy", "      targets: [{apiVersion: '*', kind: ConfigMap, namespace: a, name: one}]\n" + patch, "a/one old-5-one pass"},
		{"any version by name, and not there", "ClusterPolicy", "      targets: [{apiVersion: '*', kind: ConfigMap, namespace: a, name: none}]\n" + patch, " error"},
		{"any version", "ClusterPolicy", "      targets: [{apiVersion: 'v*', kind: ConfigMap, namespace: a}]\n" + patch, "a/one old-5-one pass, a/two old-5-two pass"},
		{"by name", "ClusterPolicy", "      targets: [{apiVersion: v1, kind: ConfigMap, namespace: \"{{ request.namespace }}\", name: one}]\n" + patch, "a/one old-5-one pass"},
		{"by selector", "ClusterPolicy", "      targets: [{apiVersion: v1, kind: ConfigMap, selector: {matchLabels: {pick: \"{{ 'it' }}\"}}}]\n" + patch, "a/one old-5-one pass, b/three old-5-three pass"},
		{"by wildcard", "ClusterPolicy", "      targets: [{apiVersion: v1, kind: ConfigMap, namespace: \"*\", name: t*}]\n" + patch, "a/two old-5-two pass, b/three old-5-three pass"},
		{"in the own namespace", "Policy", "      targets: [{apiVersion: v1, kind: ConfigMap, namespace: b}]\n" + patch, "a/one old-5-one pass, a/two old-5-two pass"},
		{"not there", "ClusterPolicy", "      targets: [{apiVersion: v1, kind: ConfigMap, namespace: a, name: none}, {apiVersion: v1, kind: ConfigMap, name: one}]\n" + patch, " error, a/one old-5-one pass"},
		{"preconditions of a target", "ClusterPolicy", "      targets:\n      - apiVersion: v1\n        kind: ConfigMap\n        namespace: a\n        preconditions: {all: [{key: \"{{ target.metadata.name }}\", operator: Equals, value: one}]}\n" + patch, "a/one old-5-one pass, a/two old skip"},
		{"nothing to change", "ClusterPolicy", "      targets: [{apiVersion: v1, kind: ConfigMap, name: one}]\n      patchStrategicMerge: {data: {k: old}}\n", "a/one old skip"},
		{"a loop", "ClusterPolicy", "      targets: [{apiVersion: v1, kind: ConfigMap, name: one}]\n      foreach: [{list: \"['x', 'y']\", order: Ascending, patchStrategicMerge: {data: {k: \"{{ target.data.k }}{{ element }}\"}}}, {list: \"['z']\", patchStrategicMerge: {data: {k: \"{{ target.data.k }}{{ element }}\"}}}]\n", "a/one oldyz pass"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := existingPolicy(t, tt.kind, tt.rest)
			in := interp.New([]*policy.Policy{p}, nil, world, interp.Limits{})
			before := mustJSON(t, world.Objects)
			var got []string
			for _, m := range in.MutateExisting(t.Context(), secretRequest(t, "CREATE", `go: "1", v: "5"`), p.FullName(), "r", world) {
				text := " " + string(m.Status)
				if m.After != nil {
					meta, data := m.After["metadata"].(map[string]any), m.After["data"].(map[string]any)
					text = meta["namespace"].(string) + "/" + meta["name"].(string) + " " + data["k"].(string) + text
				}
				got = append(got, text)
			}
			if d := textdiff.Values(tt.want, strings.Join(got, ", ")); d != "" {
				t.Error(d)
			}
			if mustJSON(t, world.Objects) != before {
				t.Error("an object was changed")
			}
		})
	}
}

func TestTriggered(t *testing.T) {
	p := existingPolicy(t, "ClusterPolicy", "      targets: [{apiVersion: v1, kind: ConfigMap, name: one}]\n      patchStrategicMerge: {data: {k: v}}\n")
	in := interp.New([]*policy.Policy{p}, nil, &interp.Offline{}, interp.Limits{})
	for _, tt := range []struct {
		operation, data string
		want            interp.Status
	}{
		{"CREATE", `go: "1"`, interp.Pass}, {"UPDATE", `go: "1"`, interp.Pass}, {"CREATE", `go: "2"`, interp.Skip},
		{"DELETE", `go: "1"`, interp.None}, // it lists no DELETE
	} {
		got := in.Triggered(t.Context(), secretRequest(t, tt.operation, tt.data))
		if len(got) != 1 || got[0].Status != tt.want {
			t.Errorf("%s %s: %+v", tt.operation, tt.data, got)
		}
	}
	if got := in.Mutate(t.Context(), secretRequest(t, "CREATE", `go: "1"`)); len(got.Rules) != 0 || got.Changed() {
		t.Errorf("it changes nothing at admission: %+v", got)
	}
}
