//go:build e2e

package controller

import (
	"context"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kvap/kvap/api/v1alpha1"
	"github.com/kvap/kvap/test/e2e/testcluster"
)

// local is a policy of the namespace default, in a version.
func local(version, label string) string {
	return strings.NewReplacer("ClusterPolicy", "Policy", "kyverno.io/v1", "kyverno.io/"+version,
		"{name: local}", "{name: local, namespace: default}").Replace(requires("local", label, "Enforce"))
}

// define defines Policies anew for a test, and undefines them when it ends.
func (c *cluster) define(t *testing.T) {
	t.Helper()
	if err := c.plane.InstallCRDs(t.Context(), standIns("policies.kyverno.io")...); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		crd := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: "policies.kyverno.io"}}
		c.remove(t, crd)
		testcluster.Soon(t, "the definition is gone", func() bool {
			return apierrors.IsNotFound(c.Get(context.Background(), client.ObjectKeyFromObject(crd), crd))
		})
	})
}

// redefine changes the definition of Policies.
func (c *cluster) redefine(t *testing.T, change func(*apiextensionsv1.CustomResourceDefinition)) {
	t.Helper()
	testcluster.Soon(t, "the definition is changed", func() bool {
		crd := &apiextensionsv1.CustomResourceDefinition{}
		if err := c.Get(t.Context(), client.ObjectKey{Name: "policies.kyverno.io"}, crd); err != nil {
			t.Fatal(err)
		}
		change(crd)
		err := c.Update(t.Context(), crd)
		if err != nil && !apierrors.IsConflict(err) {
			t.Fatal(err)
		}
		return err == nil
	})
}

// A version of policies is served no more, as after an upgrade of Kyverno: the controller
// goes on with the one that is.
func TestVersionsChange(t *testing.T) {
	shared.control(t, enforcing())
	shared.define(t)
	shared.apply(t, local("v1", "owner"))
	shared.awaitReady(t, "Policy", "default", "local")
	shared.redefine(t, func(crd *apiextensionsv1.CustomResourceDefinition) {
		for i := range crd.Spec.Versions {
			old := crd.Spec.Versions[i].Name == "v1"
			crd.Spec.Versions[i].Served, crd.Spec.Versions[i].Storage = !old, !old
		}
	})
	testcluster.Soon(t, "the new version is served", func() bool {
		o := testcluster.Read(t, local("v2beta1", "owner"))[0]
		return shared.Get(t.Context(), client.ObjectKeyFromObject(o), o) == nil
	})
	shared.apply(t, local("v2beta1", "team"))
	testcluster.Soon(t, "the policy is enforced as it is now", func() bool {
		return shared.tryCreate(t.Context(), map[string]string{"team": "a"}) == nil && apierrors.IsInvalid(shared.tryCreate(t.Context(), map[string]string{"owner": "a"}))
	})
}

// A controller that may no longer list policies goes on with what it has read, and says so
// of them, with condition, event and metric.
func TestNoLongerHeard(t *testing.T) {
	shared.define(t)
	config, grant := shared.reading(t)
	grant("policies", "clusterpolicies", "policyexceptions")
	controlAs(t, config, enforcing())
	shared.apply(t, local("v1", "owner"))
	shared.awaitReady(t, "Policy", "default", "local")
	grant("clusterpolicies", "policyexceptions")
	shared.redefine(t, func(crd *apiextensionsv1.CustomResourceDefinition) { // which ends watches
		crd.Spec.Names.ShortNames = []string{"locals"}
	})
	name := "local.default.policies.kyverno.io"
	testcluster.Soon(t, "the policy says that it is not heard", func() bool {
		c := shared.condition(t, name, v1alpha1.ConditionCompiled)
		return c.Reason == "NotWatched" && strings.Contains(c.Message, "forbidden")
	})
	testcluster.Soon(t, "there is an event", func() bool { return shared.hasEvent(t, "local", "NotWatched") })
	if err := shared.tryCreate(t.Context(), nil); !apierrors.IsInvalid(err) {
		t.Errorf("what was read last is no longer in force: %v", err)
	}
	shared.apply(t, requires("heard", "team", "Enforce"))
	shared.awaitReady(t, "ClusterPolicy", "", "heard")
}

// A kind that appears and may not be listed keeps nothing from the others.
func TestNewKindThatMayNotBeListed(t *testing.T) {
	config, grant := shared.reading(t)
	grant("clusterpolicies", "policyexceptions")
	controlAs(t, config, enforcing())
	shared.apply(t, requires("first", "owner", "Enforce"))
	shared.awaitReady(t, "ClusterPolicy", "", "first")
	shared.define(t)
	shared.apply(t, requires("second", "team", "Enforce"))
	shared.awaitReady(t, "ClusterPolicy", "", "second")
	shared.apply(t, local("v1", "cost"))
	grant("policies", "clusterpolicies", "policyexceptions")
	shared.awaitReady(t, "Policy", "default", "local")
}

// reading is the config of a user who may list those of Kyverno's kinds that are granted,
// and do everything with the rest.
func (c *cluster) reading(t *testing.T) (config *rest.Config, grant func(resources ...string)) {
	t.Helper()
	config, _ = c.limited(t)
	role := &rbacv1.ClusterRole{}
	return config, func(resources ...string) {
		if err := c.Get(t.Context(), client.ObjectKey{Name: "limited"}, role); err != nil {
			t.Fatal(err)
		}
		all := []string{"*"}
		role.Rules = []rbacv1.PolicyRule{
			{APIGroups: []string{"", "kvap.dev", "policies.kyverno.io", "apiextensions.k8s.io", "events.k8s.io", "discovery.k8s.io", "admissionregistration.k8s.io"}, Resources: all, Verbs: all},
			{APIGroups: []string{"kyverno.io"}, Resources: resources, Verbs: all},
		}
		if err := c.Update(t.Context(), role); err != nil {
			t.Fatal(err)
		}
	}
}
