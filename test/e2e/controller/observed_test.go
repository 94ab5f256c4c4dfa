//go:build e2e

package controller

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/cli-utils/pkg/kstatus/status"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/kvap/kvap/api/v1alpha1"
	"github.com/kvap/kvap/controller"
	"github.com/kvap/kvap/test/e2e/testcluster"
)

// told is a PolicyTranslation as others read it, and what kstatus makes of it.
func (c *cluster) told(t *testing.T, name string) (*unstructured.Unstructured, status.Status) {
	t.Helper()
	o := &unstructured.Unstructured{}
	o.SetGroupVersionKind(v1alpha1.GroupVersion().WithKind("PolicyTranslation"))
	if err := c.Get(t.Context(), client.ObjectKey{Name: name}, o); err != nil {
		return o, status.NotFoundStatus
	}
	result, err := status.Compute(o)
	if err != nil {
		t.Fatal(err)
	}
	return o, result.Status
}

// endsWait tells that `kubectl wait --for=condition=Ready` ends with an object.
func endsWait(o *unstructured.Unstructured) bool {
	conditions, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions")
	for _, one := range conditions {
		c, _ := one.(map[string]any)
		if c["type"] != "Ready" {
			continue
		}
		observed, ok := c["observedGeneration"].(int64)
		return c["status"] == "True" && (!ok || observed >= o.GetGeneration())
	}
	return false
}

// isAbout tells that a PolicyTranslation is about its policy as it is.
func (c *cluster) isAbout(t *testing.T, name, policy string) bool {
	t.Helper()
	source := &unstructured.Unstructured{}
	source.SetAPIVersion("kyverno.io/v1")
	source.SetKind("ClusterPolicy")
	if err := c.Get(t.Context(), client.ObjectKey{Name: policy}, source); err != nil {
		t.Fatal(err)
	}
	o, _ := c.told(t, name)
	said, _, _ := unstructured.NestedInt64(o.Object, "status", "sourceGeneration")
	return said == source.GetGeneration()
}

// Who waits for a policy waits for the policy as it is: an edit makes it not ready until what
// was edited is enforced, and a policy in the place of another becomes ready.
func TestReadyIsOfThePolicyAsItIs(t *testing.T) {
	c := shared
	const name = "edited.clusterpolicies.kyverno.io"
	c.control(t, controller.Options{Mode: v1alpha1.ModeEnforce})
	t.Cleanup(func() { c.clear(t) })
	ready := func() bool {
		o, at := c.told(t, name)
		return endsWait(o) && at == status.CurrentStatus
	}
	for _, label := range []string{"first", "second", "third"} { // of several generations
		c.apply(t, requires("edited", label, "Enforce"))
		if label != "first" {
			testcluster.Soon(t, "what was said before the edit ends no wait", func() bool { return !ready() || c.isAbout(t, name, "edited") })
		}
		testcluster.Soon(t, "the edit is enforced", ready)
		if err := c.tryCreate(t.Context(), map[string]string{"first": "x"}); (err == nil) != (label == "first") {
			t.Errorf("it waits no longer, and a ConfigMap without the label %s: %v", label, err)
		}
	}

	again := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(requires("edited", "fourth", "Enforce")), &again.Object); err != nil {
		t.Fatal(err)
	}
	c.remove(t, again.DeepCopy())
	if err := c.Create(t.Context(), again); err != nil { // as kubectl replace --force
		t.Fatal(err)
	}
	testcluster.Soon(t, "the policy in its place is enforced", func() bool {
		return ready() && c.tryCreate(t.Context(), map[string]string{"third": "x"}) != nil
	})
}

// kstatus goes on waiting for what may come, and not for what somebody has to change.
func TestFailedForKstatus(t *testing.T) {
	c := shared
	c.control(t, controller.Options{Mode: v1alpha1.ModeEnforce})
	t.Cleanup(func() { c.clear(t) })
	for name, want := range map[string]struct {
		text string
		at   status.Status
	}{
		"needs-kind": {`apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: needs-kind}
spec:
  rules:
  - name: r
    match: {any: [{resources: {kinds: [acme.io/v1/Widget]}}]}
    validate: {failureAction: Enforce, message: m, pattern: {spec: {size: "?*"}}}
`, status.InProgressStatus},
		"bad-mode": {`apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: bad-mode, annotations: {kvap.dev/mode: of}}
spec:
  rules:
  - name: r
    match: {any: [{resources: {kinds: [Secret]}}]}
    validate: {failureAction: Audit, message: m, pattern: {metadata: {name: "?*"}}}
`, status.FailedStatus},
	} {
		c.apply(t, want.text)
		testcluster.Soon(t, name+" is "+string(want.at), func() bool {
			o, at := c.told(t, name+".clusterpolicies.kyverno.io")
			said, _, _ := unstructured.NestedInt64(o.Object, "status", "observedGeneration")
			return at == want.at && said == o.GetGeneration() && said > 0
		})
	}
}
