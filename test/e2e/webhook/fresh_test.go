//go:build e2e

package webhook

import (
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	apischema "k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kvap/kvap/test/controlplane"
	"github.com/kvap/kvap/test/e2e/testcluster"
)

// A policy that changes objects of a kind is ready once API servers ask about them, also
// where the kind was defined a moment before, or is defined after the policy.
func TestFreshMutation(t *testing.T) {
	shared.start(t, "")
	for i, first := range []string{"definition", "policy", "definition"} {
		kind := apischema.GroupVersionKind{Group: fmt.Sprintf("fresh%d.io", i), Version: "v1", Kind: "Gadget"}
		define := func() {
			if err := shared.Plane.InstallCRDs(t.Context(), controlplane.StandIn(kind, "gadgets", true)); err != nil {
				t.Fatal(err)
			}
		}
		if first == "definition" {
			define()
		}
		name := fmt.Sprintf("gadgets-%d", i)
		shared.Apply(t, fmt.Sprintf(`
apiVersion: kvap.dev/v1alpha1
kind: ClusterPolicy
metadata: {name: %s}
spec:
  background: false
  rules:
  - name: colour
    match: {any: [{resources: {kinds: [fresh%d.io/v1/Gadget]}}]}
    mutate: {patchStrategicMerge: {metadata: {labels: {+(colour): red}}}}
`, name, i))
		if first == "policy" {
			testcluster.Soon(t, "the policy is not ready", func() bool { return shared.says(t, name, "NotServed") })
			define()
		}
		testcluster.Soon(t, "the policy is ready", func() bool { return shared.condition(t, name, "Ready")["status"] == "True" })
		o := &unstructured.Unstructured{}
		o.SetGroupVersionKind(kind)
		o.SetName("one")
		o.SetNamespace("default")
		if err := shared.Create(t.Context(), o, client.DryRunAll); err != nil || o.GetLabels()["colour"] != "red" {
			t.Errorf("%s first: %v %v", first, err, o.GetLabels())
		}
	}
}
