//go:build e2e

package controller

import (
	"strings"
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kvap/kvap/api/v1alpha1"
	"github.com/kvap/kvap/controller"
	"github.com/kvap/kvap/test/e2e/testcluster"
)

// wildcard is a policy that denies everything, whatever is done to it.
const wildcard = `apiVersion: kvap.dev/v1alpha1
kind: ClusterPolicy
metadata: {name: everything}
spec:
  background: false
  rules:
  - name: nothing
    match: {any: [{resources: {kinds: ["*/*"]}}]}
    validate: {failureAction: Enforce, allowExistingViolations: false, message: Nothing goes., deny: {}}
`

// own is a policy, or the record of its move, of kvap.dev.
func own(kind, namespace string, spec map[string]any) *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
	o.SetAPIVersion("kvap.dev/v1alpha1")
	o.SetKind(kind)
	o.SetNamespace(namespace)
	o.SetName("locked-in")
	return o
}

// A policy that denies everything keeps its own controller from nothing: what that writes is
// written, by a leader, and policies of kvap.dev can be deleted, the policy itself as well.
// With it its denials end.
func TestWildcardPolicy(t *testing.T) {
	spec := map[string]any{"rules": []any{map[string]any{
		"name": "r", "match": map[string]any{"any": []any{map[string]any{"resources": map[string]any{"kinds": []any{"Secret"}}}}},
		"validate": map[string]any{"message": "m", "pattern": map[string]any{"metadata": map[string]any{"name": "?*"}}},
	}}}
	theirs := []*unstructured.Unstructured{
		own("ClusterPolicy", "", spec), own("Policy", "default", spec),
		own("Migration", "", map[string]any{"source": map[string]any{"group": "kyverno.io", "kind": "ClusterPolicy", "name": "a"}}),
	}
	for _, o := range theirs {
		shared.put(t, o)
	}
	stop := shared.control(t, controller.Options{Mode: v1alpha1.ModeEnforce, LeaderElection: true})
	shared.apply(t, wildcard)
	const name = "everything.clusterpolicies.kvap.dev"
	ready := func() bool { return shared.condition(t, name, v1alpha1.ConditionReady).Status == metav1.ConditionTrue }
	testcluster.Soon(t, "the policy is in force, and says so", ready)

	denied := func(what string, err error) {
		t.Helper()
		if !apierrors.IsInvalid(err) && !apierrors.IsForbidden(err) {
			t.Errorf("%s: %v, want a denial", what, err)
		}
	}
	denied("a ConfigMap", shared.tryCreate(t.Context(), nil))
	denied("another lease", shared.Create(t.Context(), &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "another"}}, client.DryRunAll))
	another := own("Policy", "default", spec)
	another.SetName("another")
	denied("another policy", shared.Create(t.Context(), another, client.DryRunAll))
	for _, o := range theirs {
		o.SetLabels(map[string]string{"changed": "yes"})
		denied("a change of a "+o.GetKind(), shared.Update(t.Context(), o, client.DryRunAll))
		if err := shared.Delete(t.Context(), o, client.DryRunAll); err != nil {
			t.Errorf("deleting a %s: %v", o.GetKind(), err)
		}
	}
	testcluster.WriteOwn(t, shared)

	// The next leader writes as well, and what comes to depend on Params has them.
	stop()
	shared.control(t, controller.Options{Mode: v1alpha1.ModeEnforce, LeaderElection: true})
	shared.remove(t, shared.translation(t, name))
	testcluster.Soon(t, "the next leader says so too", ready)

	policy := own("ClusterPolicy", "", nil)
	policy.SetName("everything")
	shared.remove(t, policy)
	testcluster.Soon(t, "everything is admitted", func() bool { return shared.tryCreate(t.Context(), nil) == nil })
	testcluster.Soon(t, "nothing is left of the policy", func() bool { return shared.translation(t, name).Name == "" })
}

// Whoever made a policy of Kyverno on everything can delete it, and other policies: their
// deletion is judged by no wildcard. A policy that names their kind judges it.
func TestWildcardPolicyOfKyverno(t *testing.T) {
	const keeping = `apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: keeping}
spec:
  background: false
  rules:
  - name: keep
    match: {any: [{resources: {kinds: [ClusterPolicy], names: [kept], operations: [DELETE]}}]}
    validate: {failureAction: Enforce, message: This one stays., deny: {}}
`
	everything := strings.Replace(wildcard, "kvap.dev/v1alpha1", "kyverno.io/v1", 1)
	shared.control(t, controller.Options{Mode: v1alpha1.ModeEnforce})
	for _, name := range []string{"kept", "loose"} {
		shared.apply(t, requires(name, name, "Audit"))
	}
	remove := func(name string, options ...client.DeleteOption) error {
		return shared.Delete(t.Context(), testcluster.Read(t, requires(name, name, "Audit"))[0], options...)
	}
	shared.apply(t, keeping)
	shared.awaitReady(t, "ClusterPolicy", "", "keeping")
	shared.apply(t, everything)
	shared.awaitReady(t, "ClusterPolicy", "", "everything")

	if err := shared.tryCreate(t.Context(), nil); err == nil {
		t.Error("a ConfigMap is admitted: the policy is not in force")
	}
	if err := remove("kept", client.DryRunAll); err == nil || !strings.Contains(err.Error(), "This one stays.") {
		t.Errorf("deleting what a policy keeps by its kind: %v", err)
	}
	if err := remove("loose", client.DryRunAll); err != nil {
		t.Errorf("deleting another policy: %v", err)
	}
	if err := shared.Delete(t.Context(), testcluster.Read(t, everything)[0]); err != nil {
		t.Errorf("deleting the policy itself: %v", err)
	}
	testcluster.Soon(t, "everything is admitted", func() bool { return shared.tryCreate(t.Context(), nil) == nil })
	shared.remove(t, testcluster.Read(t, keeping)[0])
	testcluster.Soon(t, "nobody keeps the policy", func() bool { return remove("kept", client.DryRunAll) == nil })
}
