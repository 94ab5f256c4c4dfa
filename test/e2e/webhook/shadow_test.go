//go:build e2e

package webhook

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kvap/kvap/api/v1alpha1"
	"github.com/kvap/kvap/test/e2e/testcluster"
)

// What a process has said in shadow goes with its Pod, and the trace of it as a field manager;
// what one that is there has said stays.
func TestShadowGoesWithItsReplica(t *testing.T) {
	c := shared
	const name = "shadowed.clusterpolicies.kvap.dev"
	c.unregister(t)
	t.Setenv("POD_NAME", "kvap-there") // only who knows its own Pod looks for those of others
	c.start(t, "")
	c.Apply(t, `apiVersion: kvap.dev/v1alpha1
kind: ClusterPolicy
metadata: {name: shadowed, annotations: {kvap.dev/mode: shadow}}
spec:
  rules:
  - name: r
    match: {any: [{resources: {kinds: [Secret], names: ["shadowed-*"]}}]}
    context:
    - {name: all, apiCall: {urlPath: /api/v1/namespaces}}
    validate: {failureAction: Enforce, message: m, deny: {conditions: {all: [{key: "{{ length(all.items) }}", operator: GreaterThan, value: 0}]}}}
---
apiVersion: v1
kind: Pod
metadata: {name: kvap-there, namespace: default}
spec: {containers: [{name: a, image: b}]}`)
	testcluster.Soon(t, "the policy is ready", func() bool { return c.says(t, "shadowed", "Ready") })
	for _, by := range []string{"kvap-gone", "kvap-there"} {
		entry := &unstructured.Unstructured{Object: map[string]any{
			"metadata": map[string]any{"name": name},
			"status":   map[string]any{"shadow": []any{map[string]any{"by": by, "generation": int64(1)}}},
		}}
		entry.SetGroupVersionKind(v1alpha1.GroupVersion().WithKind("PolicyTranslation"))
		if err := c.Status().Patch(t.Context(), entry, client.Apply, client.FieldOwner("kvap-shadow-"+by), client.ForceOwnership); err != nil { //nolint:staticcheck // of an object without a type
			t.Fatal(err)
		}
	}
	testcluster.Soon(t, "what is of a Pod that is not there goes", func() bool {
		translation := &v1alpha1.PolicyTranslation{}
		if err := c.Get(t.Context(), client.ObjectKey{Name: name}, translation); err != nil {
			t.Fatal(err)
		}
		there := map[string]bool{}
		for _, s := range translation.Status.Shadow {
			there[s.By] = true
		}
		for _, m := range translation.ManagedFields {
			there[m.Manager] = true
		}
		if !there["kvap-there"] || !there["kvap-shadow-kvap-there"] {
			t.Fatalf("what is of a Pod that is there has gone: %v", there)
		}
		return !there["kvap-gone"] && !there["kvap-shadow-kvap-gone"]
	})
}
