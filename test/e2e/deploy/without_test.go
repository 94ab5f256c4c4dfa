//go:build e2e

package deploy

import (
	"context"
	"os/exec"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apischema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/restmapper"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kvap/kvap/controller"
	"github.com/kvap/kvap/test/controlplane"
	"github.com/kvap/kvap/test/e2e/testcluster"
)

// kyvernos denies a Secret without an owner, kvaps a ConfigMap.
const (
	kyvernos = `
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: kyvernos, annotations: {kvap.dev/mode: enforce}}
spec:
  validationFailureAction: Enforce
  rules:
    - name: owner
      match: {any: [{resources: {kinds: [Secret], operations: [CREATE]}}]}
      validate: {message: A Secret has an owner., pattern: {metadata: {labels: {owner: "?*"}}}}
`
	kvaps = `
apiVersion: kvap.dev/v1alpha1
kind: ClusterPolicy
metadata: {name: kvaps}
spec:
  validationFailureAction: Enforce
  rules:
    - name: owner
      match: {any: [{resources: {kinds: [ConfigMap], operations: [CREATE]}}]}
      validate: {message: A ConfigMap has an owner., pattern: {metadata: {labels: {owner: "?*"}}}}
`
)

// Where the chart leaves kvap's own kinds of policies out, the controller does all for
// Kyverno's, and clusterpolicies are these; the kinds may come later, and go.
func TestWithoutOwnPolicies(t *testing.T) {
	shared.Undefine(t)
	for _, k := range controller.ForeignKinds() {
		if err := shared.Plane.InstallCRDs(t.Context(), controlplane.StandIn(k.GroupVersionKind, k.Plural, k.Namespaced)); err != nil {
			t.Fatal(err)
		}
	}
	shared.runAsAccount(t)
	shared.apply(t, kyvernos)
	t.Cleanup(func() { _ = shared.Delete(context.Background(), testcluster.Read(t, kyvernos)[0]) })
	denied := func(o client.Object) bool {
		o.SetName("nobodys")
		o.SetNamespace("default")
		err := shared.Create(t.Context(), o, client.DryRunAll)
		return err != nil && strings.Contains(err.Error(), "has an owner.")
	}
	secrets := func() bool { return denied(&corev1.Secret{}) }
	maps := func() bool { return denied(&corev1.ConfigMap{}) }
	testcluster.Soon(t, "Kyverno's policy judges", secrets)
	if got := shared.meant(t); got != "kyverno.io" {
		t.Errorf("clusterpolicies are those of %s", got)
	}
	if text, err := exec.Command(shared.Kvap, "status", "-A", "--kubeconfig", shared.Plane.Kubeconfig(controlplane.Admin)).CombinedOutput(); err != nil || !strings.Contains(string(text), "kyvernos") {
		t.Errorf("kvap status: %v\n%s", err, text)
	}

	shared.Define(t)
	shared.apply(t, kvaps)
	testcluster.Soon(t, "kvap's policy judges", maps)
	if got := shared.meant(t); got != "kvap.dev" {
		t.Errorf("with both, clusterpolicies are those of %s", got)
	}

	shared.Undefine(t)
	testcluster.Soon(t, "kvap's policy is gone with its kind", func() bool { return !maps() })
	if !secrets() {
		t.Error("Kyverno's policy judges no longer")
	}
}

// meant is the group whose clusterpolicies kubectl takes where nobody names one.
func (c *cluster) meant(t *testing.T) string {
	t.Helper()
	groups, err := restmapper.GetAPIGroupResources(discovery.NewDiscoveryClientForConfigOrDie(c.Config))
	if err != nil {
		t.Fatal(err)
	}
	found, err := restmapper.NewDiscoveryRESTMapper(groups).ResourceFor(apischema.GroupVersionResource{Resource: "clusterpolicies"})
	if err != nil {
		t.Fatal(err)
	}
	return found.Group
}
