package scan

import (
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// In an excluded namespace only the rules that name it are asked, as natively.
func TestExcludedNamespaceThatARuleNames(t *testing.T) {
	p := policiesOf(t, `
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: p}
spec:
  rules:
    - name: everywhere
      match: {any: [{resources: {kinds: [ConfigMap]}}]}
      validate: {message: m, pattern: {metadata: {labels: {team: "?*"}}}}
    - name: system
      match: {any: [{resources: {kinds: [ConfigMap], namespaces: [kube-system]}}]}
      validate: {message: m, pattern: {metadata: {labels: {owner: "?*"}}}}
`)
	p.ExcludeNamespaces = []string{"kube-system", "kube-public"}
	j, err := NewJudge(p, nil)
	if err != nil {
		t.Fatal(err)
	}
	for ns, want := range map[string][]string{"team": {"everywhere fail"}, "kube-system": {"system fail"}} {
		o := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "a", "namespace": ns},
		}}
		if j.excludes(o.GetNamespace()) {
			t.Errorf("%s is passed over", ns)
		}
		scanned, err := j.Object(t.Context(), o, nil)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, r := range scanned.Results {
			got = append(got, r.Rule+" "+r.Result)
		}
		if slices.Sort(got); !slices.Equal(got, want) {
			t.Errorf("%s: got %v, want %v", ns, got, want)
		}
	}
	o := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "a", "namespace": "kube-public"},
	}}
	if !j.excludes(o.GetNamespace()) {
		t.Error("kube-public is judged, though no rule names it")
	}
}
