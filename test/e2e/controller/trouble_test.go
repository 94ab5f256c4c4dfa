//go:build e2e

package controller

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/kvap/kvap/api/v1alpha1"
	"github.com/kvap/kvap/test/controlplane"
	"github.com/kvap/kvap/test/e2e/testcluster"
)

// limited is the config of a user who may do with native policies what is granted, and
// everything with the rest.
func (c *cluster) limited(t *testing.T) (config *rest.Config, grant func(verbs ...string)) {
	t.Helper()
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "limited"}}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "limited"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "limited"},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "limited"}},
	}
	rules := func(verbs []string) []rbacv1.PolicyRule {
		all := []string{"*"}
		return []rbacv1.PolicyRule{
			{APIGroups: []string{"", "kvap.dev", "kyverno.io", "policies.kyverno.io", "apiextensions.k8s.io", "events.k8s.io", "discovery.k8s.io"}, Resources: all, Verbs: all},
			{APIGroups: []string{"admissionregistration.k8s.io"}, Resources: all, Verbs: append([]string{"get", "list", "watch"}, verbs...)},
		}
	}
	if err := c.Create(t.Context(), role); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.remove(t, role) })
	if err := c.Create(t.Context(), binding); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.remove(t, binding) })
	config = c.plane.Config(controlplane.Admin)
	config.Impersonate = rest.ImpersonationConfig{UserName: "limited"}
	return config, func(verbs ...string) {
		role.Rules = rules(verbs)
		if err := c.Update(t.Context(), role); err != nil {
			t.Fatal(err)
		}
	}
}

// A controller that may not write says so, with condition and event; what is in force
// stays, and what was wanted comes into force once it may.
func TestForbidden(t *testing.T) {
	shared.clear(t)
	config, grant := shared.limited(t)
	grant("create", "patch", "update", "delete")
	controlAs(t, config, enforcing())
	name := "curbed.clusterpolicies.kyverno.io"
	shared.apply(t, requires("curbed", "owner", "Enforce"))
	shared.awaitReady(t, "ClusterPolicy", "", "curbed")
	grant()
	shared.apply(t, requires("curbed", "team", "Enforce"))
	testcluster.Soon(t, "the policy says that it is forbidden", func() bool {
		return shared.condition(t, name, v1alpha1.ConditionSynced).Reason == "Forbidden"
	})
	testcluster.Soon(t, "there is an event", func() bool { return shared.hasEvent(t, "curbed", "Forbidden") })
	if err := shared.tryCreate(t.Context(), map[string]string{"team": "a"}); !apierrors.IsInvalid(err) {
		t.Errorf("the version of before is no longer in force: %v", err)
	}
	grant("create", "patch", "update", "delete")
	shared.awaitReady(t, "ClusterPolicy", "", "curbed")
	if err := shared.tryCreate(t.Context(), map[string]string{"team": "a"}); err != nil {
		t.Errorf("the new version: %v", err)
	}
}

// A ConfigMap of a namespace that is not there is missing; when both come, the policy
// is in force.
func TestMissingNamespace(t *testing.T) {
	shared.control(t, enforcing())
	shared.apply(t, strings.Replace(lookup, "namespace: default}", "namespace: later}", 1))
	name := "lookup.clusterpolicies.kyverno.io"
	testcluster.Soon(t, "the policy says that the ConfigMap is missing", func() bool {
		return shared.condition(t, name, v1alpha1.ConditionParamsResolved).Reason == "Missing"
	})
	testcluster.Soon(t, "there is an event", func() bool { return shared.hasEvent(t, "lookup", "Missing") })
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "later"}}
	if err := shared.Create(t.Context(), namespace); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { shared.remove(t, namespace) })
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "allowed-teams", Namespace: "later"}, Data: map[string]string{"team": "red"}}
	if err := shared.Create(t.Context(), cm); err != nil {
		t.Fatal(err)
	}
	shared.awaitReady(t, "ClusterPolicy", "", "lookup")
	testcluster.Soon(t, "red is allowed", func() bool { return shared.trySecret(t.Context(), map[string]string{"team": "red"}) == nil })
}

// Of an expression that may cost more than an API server allows the policy tells, with an
// event, and its other rules are in force.
func TestOverBudget(t *testing.T) {
	shared.control(t, enforcing())
	dear := `apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: dear}
spec:
  validationFailureAction: Enforce
  background: false
  rules:
  - name: dear
    match: {any: [{resources: {kinds: [Pod]}}]}
    validate:
      cel:
        expressions:
        - expression: >-
            object.spec.containers.all(a, object.spec.containers.all(b, object.spec.containers.all(c,
            object.spec.containers.all(d, object.spec.containers.all(e, a.image + b.image + c.image + d.image != e.image)))))
          message: too dear
`
	_, rules, _ := strings.Cut(requires("dear", "owner", "Enforce"), "rules:\n")
	shared.apply(t, dear+rules)
	name := "dear.clusterpolicies.kyverno.io"
	testcluster.Soon(t, "the policy says which rule it is", func() bool {
		c := shared.condition(t, name, v1alpha1.ConditionCompiled)
		return c.Reason == "Costly" && strings.Contains(c.Message, "rule dear")
	})
	testcluster.Soon(t, "there is an event", func() bool { return shared.hasEvent(t, "dear", "Costly") })
	testcluster.Soon(t, "the other rule is in force", func() bool { return apierrors.IsInvalid(shared.tryCreate(t.Context(), nil)) })
}
