//go:build e2e

package webhook

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	apischema "k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kvap/kvap/api/v1alpha1"
	"github.com/kvap/kvap/test/controlplane"
	"github.com/kvap/kvap/test/e2e/testcluster"
)

// An exception that is in force is told of wherever the policy is, and who judges by the cluster's
// policies judges by it.
func TestExceptionInForce(t *testing.T) {
	c := shared
	kind := apischema.GroupVersionKind{Group: "kyverno.io", Version: "v2", Kind: "PolicyException"}
	if err := c.Plane.InstallCRDs(t.Context(), controlplane.StandIn(kind, "policyexceptions", true)); err != nil {
		t.Fatal(err)
	}
	c.start(t, "", "--exception-namespaces", "kube-public")
	c.Apply(t, `apiVersion: kvap.dev/v1alpha1
kind: ClusterPolicy
metadata: {name: excepted}
spec:
  rules:
  - name: owner
    match: {any: [{resources: {kinds: [ConfigMap]}}]}
    validate: {failureAction: Enforce, message: There is an owner., pattern: {metadata: {labels: {owner: "?*"}}}}
---
apiVersion: kyverno.io/v2
kind: PolicyException
metadata: {name: probe, namespace: kube-public, annotations: {kvap.dev/expires-at: "2100-01-01T00:00:00Z"}}
spec:
  exceptions: [{policyName: excepted, ruleNames: [owner]}]
  match: {any: [{resources: {kinds: [ConfigMap], names: [probe]}}]}`)
	const probe = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: probe, namespace: default}\n"
	other := strings.Replace(probe, "name: probe", "name: other", 1)
	c.denied(t, other)
	c.admitted(t, probe)
	testcluster.Soon(t, "the policy tells of the exception", func() bool {
		out, code := c.run(t, "status", "excepted", "-o", "json")
		for _, want := range []string{`"name": "probe"`, `"namespace": "kube-public"`, `"expires": "2100-01-01T00:00:00Z"`} {
			if !strings.Contains(out, want) {
				return false
			}
		}
		return code == 0
	})
	translation := &unstructured.Unstructured{}
	translation.SetGroupVersionKind(v1alpha1.GroupVersion().WithKind("PolicyTranslation"))
	if err := c.Get(t.Context(), client.ObjectKey{Name: "excepted.clusterpolicies.kvap.dev"}, translation); err != nil {
		t.Fatal(err)
	}
	if said, _, _ := unstructured.NestedSlice(translation.Object, "status", "exceptions"); len(said) != 1 || said[0].(map[string]any)["name"] != "probe" {
		t.Errorf("the PolicyTranslation has %v", said)
	}
	for _, form := range []string{"table", "wide"} {
		if out, _ := c.run(t, "status", "excepted", "-o", form); !strings.Contains(out, "the exception kube-public/probe is in force for owner") {
			t.Errorf("-o %s:\n%s", form, out)
		}
	}
	file := filepath.Join(t.TempDir(), "probe.yaml")
	if err := os.WriteFile(file, []byte(probe), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, code := c.run(t, "eval", "-v", "-f", file); code != 0 || strings.Contains(out, "DISAGREE") || !strings.Contains(out, "excepted") {
		t.Errorf("exit code %d\n%s", code, out)
	}
	gone := &unstructured.Unstructured{} // with its native form, which would outlive the controller
	gone.SetGroupVersionKind(v1alpha1.GroupVersion().WithKind("ClusterPolicy"))
	gone.SetName("excepted")
	if err := c.Delete(t.Context(), gone); err != nil {
		t.Fatal(err)
	}
	c.admitted(t, other)
}
