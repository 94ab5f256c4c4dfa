//go:build e2e

package background

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kvap/kvap/test/e2e/testcluster"
)

// celKinds are policies of each kind that judges or changes requests, and what excepts from
// them: one that the API server judges itself, and one for the webhook.
const celKinds = `
apiVersion: policies.kyverno.io/v1
kind: ValidatingPolicy
metadata: {name: owned}
spec:
  validationActions: [Deny]
  matchConstraints: {resourceRules: [{apiGroups: [""], apiVersions: [v1], resources: [configmaps], operations: [CREATE, UPDATE]}]}
  matchConditions: [{name: here, expression: object.metadata.namespace == 'kinds'}]
  validations: [{expression: has(object.metadata.labels) && 'owner' in object.metadata.labels, message: no owner}]
---
apiVersion: policies.kyverno.io/v1
kind: ValidatingPolicy
metadata: {name: watched}
spec:
  validationActions: [Audit]
  matchConstraints: {resourceRules: [{apiGroups: [""], apiVersions: [v1], resources: [secrets], operations: [CREATE, UPDATE]}]}
  validations: [{expression: "!object.metadata.name.startsWith('watched')", message: watched}]
---
apiVersion: policies.kyverno.io/v1
kind: NamespacedValidatingPolicy
metadata: {name: listed, namespace: kinds}
spec:
  validationActions: [Deny]
  matchConstraints: {resourceRules: [{apiGroups: [""], apiVersions: [v1], resources: [serviceaccounts], operations: [CREATE]}]}
  validations: [{expression: "resource.List('v1', 'configmaps').items.exists(m, m.metadata.name == object.metadata.name)", message: not listed}]
---
apiVersion: policies.kyverno.io/v1
kind: MutatingPolicy
metadata: {name: stamped}
spec:
  matchConstraints: {resourceRules: [{apiGroups: [""], apiVersions: [v1], resources: [configmaps], operations: [CREATE]}]}
  matchConditions: [{name: here, expression: object.metadata.namespace == 'kinds'}]
  mutations:
  - patchType: ApplyConfiguration
    applyConfiguration: {expression: "Object{metadata: Object.metadata{annotations: {'stamp': object.metadata.name}}}"}
---
apiVersion: policies.kyverno.io/v1
kind: PolicyException
metadata: {name: excepted, namespace: default}
spec:
  policyRefs: [{name: owned, kind: ValidatingPolicy}, {name: stamped, kind: MutatingPolicy}]
  matchConditions: [{name: name, expression: object.metadata.name.startsWith('excepted')}]
`

// try asks for an object, dry, and gives what is made of it.
func (c *cluster) try(t *testing.T, apiVersion, kind, namespace, name, labels string) (*unstructured.Unstructured, error) {
	t.Helper()
	o := testcluster.Read(t, "{apiVersion: "+apiVersion+", kind: "+kind+", metadata: {name: "+name+", namespace: "+namespace+", labels: "+labels+"}}")[0]
	return o, c.Create(t.Context(), o, client.DryRunAll)
}

// Whatever is done to policies of the CEL kinds, and whenever the process is killed then, they
// are enforced afterwards: they deny, tell, change and except as they say.
func TestCELKindsKilled(t *testing.T) {
	c := shared
	c.tells(t)
	c.Namespace(t, "kinds", nil)
	objects := testcluster.Read(t, celKinds)
	refused := func(err error) bool { return err != nil && strings.Contains(err.Error(), "no owner") }
	stamped := func(o *unstructured.Unstructured) bool { return o.GetAnnotations()["stamp"] == o.GetName() }

	// Each object is made, and the process killed.
	for _, o := range objects {
		if err := c.Create(t.Context(), o.DeepCopy()); err != nil {
			t.Fatal(err)
		}
		c.restart(t)
	}
	testcluster.Soon(t, "what has no owner is denied", func() bool {
		_, err := c.try(t, "v1", "ConfigMap", "kinds", "bad", "{}")
		return refused(err)
	})
	testcluster.Soon(t, "what is excepted is admitted as it is", func() bool {
		o, err := c.try(t, "v1", "ConfigMap", "kinds", "excepted-a", "{}")
		return err == nil && !stamped(o)
	})
	testcluster.Soon(t, "what has an owner is stamped", func() bool {
		o, err := c.try(t, "v1", "ConfigMap", "kinds", "good", "{owner: me}")
		return err == nil && stamped(o)
	})
	if _, err := c.try(t, "v1", "ConfigMap", "default", "elsewhere", "{}"); err != nil {
		t.Errorf("in another namespace: %v", err)
	}
	if _, err := c.try(t, "v1", "Secret", "kinds", "watched-a", "{}"); err != nil {
		t.Errorf("a policy that only watches denies: %v", err)
	}
	testcluster.Soon(t, "the webhook denies what is not listed", func() bool {
		_, err := c.try(t, "v1", "ServiceAccount", "kinds", "unlisted", "{}")
		return err != nil && strings.Contains(err.Error(), "not listed")
	})
	c.Apply(t, "{apiVersion: v1, kind: ConfigMap, metadata: {name: unlisted, namespace: kinds, labels: {owner: me}}}")
	if _, err := c.try(t, "v1", "ServiceAccount", "kinds", "unlisted", "{}"); err != nil {
		t.Errorf("what is listed is denied: %v", err)
	}
	if _, err := c.try(t, "v1", "ServiceAccount", "default", "unlisted-b", "{}"); err != nil {
		t.Errorf("a policy of a namespace judges another one: %v", err)
	}

	// While nobody runs, what the API server judges is judged, and the webhook fails closed.
	c.kill()
	if _, err := c.try(t, "v1", "ConfigMap", "kinds", "bad", "{}"); err == nil {
		t.Error("without the process a ConfigMap without owner is admitted")
	}
	if _, err := c.try(t, "v1", "ServiceAccount", "kinds", "unlisted-c", "{}"); err == nil {
		t.Error("without the process a ServiceAccount that is not listed is admitted")
	}
	if err := c.start(c.address); err != nil {
		t.Fatal(err)
	}

	// The policies change, the exception goes, and the process is killed after each.
	c.change(t, "ValidatingPolicy", "owned", "'owner' in", "'team' in")
	c.restart(t)
	testcluster.Soon(t, "the changed policy denies", func() bool {
		_, err := c.try(t, "v1", "ConfigMap", "kinds", "bad", "{owner: me}")
		return refused(err)
	})
	c.change(t, "MutatingPolicy", "stamped", "'stamp'", "'seal'")
	c.restart(t)
	testcluster.Soon(t, "the changed policy changes", func() bool {
		o, err := c.try(t, "v1", "ConfigMap", "kinds", "good", "{team: mine}")
		return err == nil && o.GetAnnotations()["seal"] == "good" && !stamped(o)
	})
	c.gone(t, "PolicyException", "default", "excepted")
	c.restart(t)
	testcluster.Soon(t, "nothing is excepted any more", func() bool {
		_, err := c.try(t, "v1", "ConfigMap", "kinds", "excepted-a", "{}")
		return refused(err)
	})

	// They go.
	for kind, name := range map[string]string{"ValidatingPolicy": "owned", "MutatingPolicy": "stamped"} {
		c.gone(t, kind, "", name)
		c.restart(t)
	}
	c.gone(t, "NamespacedValidatingPolicy", "kinds", "listed")
	c.restart(t)
	testcluster.Soon(t, "nothing is denied or changed any more", func() bool {
		o, err := c.try(t, "v1", "ConfigMap", "kinds", "bad", "{}")
		_, err2 := c.try(t, "v1", "ServiceAccount", "kinds", "unlisted-d", "{}")
		return err == nil && err2 == nil && len(o.GetAnnotations()) == 0
	})
}

// change replaces something in a policy.
func (c *cluster) change(t *testing.T, kind, name, old, text string) {
	t.Helper()
	for _, o := range testcluster.Read(t, strings.ReplaceAll(celKinds, old, text)) {
		if o.GetKind() != kind || o.GetName() != name {
			continue
		}
		o.SetResourceVersion(c.get(t, "policies.kyverno.io/v1", kind, o.GetNamespace(), name).GetResourceVersion())
		if err := c.Update(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
}

// gone deletes an object of the CEL kinds.
func (c *cluster) gone(t *testing.T, kind, namespace, name string) {
	t.Helper()
	o := c.get(t, "policies.kyverno.io/v1", kind, namespace, name)
	if err := c.Delete(context.Background(), o); err != nil && !apierrors.IsNotFound(err) {
		t.Fatal(err)
	}
}

// A GeneratingPolicy has its way though the process is killed after whatever happens to its
// triggers, its objects, its sources and itself.
func TestGeneratingPolicyKilled(t *testing.T) {
	c := shared
	c.tells(t)
	policy := strings.NewReplacer("team", "crew").Replace(teams)
	c.Apply(t, `{apiVersion: v1, kind: Secret, metadata: {name: pull-crews, namespace: default}, data: {key: b25l}}`)
	c.Namespace(t, "crew-old", map[string]string{"crew": "a"})
	c.Apply(t, policy)
	c.restart(t)
	c.await(t, "v1", "ConfigMap", "crew-old", "settings-a", there)
	c.serving(t, "crews")

	steps := []struct {
		what string
		do   func()
		want func()
	}{
		{"a trigger comes", func() { c.Namespace(t, "crew-new", map[string]string{"crew": "a"}) }, func() {
			c.await(t, "v1", "ConfigMap", "crew-new", "settings-a", there)
			c.await(t, "v1", "Secret", "crew-new", "pull-crews", value("key", "b25l"))
			c.await(t, "rbac.authorization.k8s.io/v1", "ClusterRole", "", "readers-crew-new", there)
		}},
		{"an object is changed", func() { c.merge(t, "v1", "ConfigMap", "crew-new", "settings-a", `{"data": {"size": "9"}}`) }, func() {
			c.await(t, "v1", "ConfigMap", "crew-new", "settings-a", value("size", "1"))
		}},
		{"an object is deleted", func() { _ = c.Delete(t.Context(), c.get(t, "v1", "ConfigMap", "crew-old", "settings-a")) }, func() {
			c.await(t, "v1", "ConfigMap", "crew-old", "settings-a", there)
		}},
		{"the source changes", func() { c.merge(t, "v1", "Secret", "default", "pull-crews", `{"data": {"key": "dHdv"}}`) }, func() {
			c.await(t, "v1", "Secret", "crew-old", "pull-crews", value("key", "dHdv"))
			c.await(t, "v1", "Secret", "crew-new", "pull-crews", value("key", "dHdv"))
		}},
		{"the trigger changes", func() { c.merge(t, "v1", "Namespace", "", "crew-new", `{"metadata": {"labels": {"crew": "b"}}}`) }, func() {
			c.await(t, "v1", "ConfigMap", "crew-new", "settings-b", there)
			c.await(t, "v1", "ConfigMap", "crew-new", "settings-a", gone)
		}},
		{"the trigger is none any more", func() { c.merge(t, "v1", "Namespace", "", "crew-new", `{"metadata": {"labels": {"crew": null}}}`) }, func() {
			c.await(t, "v1", "ConfigMap", "crew-new", "settings-b", gone)
			c.await(t, "rbac.authorization.k8s.io/v1", "ClusterRole", "", "readers-crew-new", gone)
		}},
		{"the policy changes", func() {
			next := testcluster.Read(t, strings.Replace(policy, `"settings-"`, `"options-"`, 1))[0]
			next.SetResourceVersion(c.get(t, "policies.kyverno.io/v1", "GeneratingPolicy", "", "crews").GetResourceVersion())
			if err := c.Update(t.Context(), next); err != nil {
				t.Fatal(err)
			}
		}, func() {
			c.await(t, "v1", "ConfigMap", "crew-old", "options-a", there)
			c.await(t, "v1", "ConfigMap", "crew-old", "settings-a", gone)
		}},
		{"the policy goes", func() { c.gone(t, "GeneratingPolicy", "", "crews") }, func() {
			c.await(t, "v1", "ConfigMap", "crew-old", "options-a", gone)
			c.await(t, "rbac.authorization.k8s.io/v1", "ClusterRole", "", "readers-crew-old", gone)
			testcluster.Soon(t, "the requests are done", func() bool { return c.pending(t) == 0 })
		}},
	}
	for _, step := range steps {
		t.Log(step.what)
		step.do()
		c.restart(t)
		step.want()
	}
}

// Existing objects are changed though the process is killed when a trigger was admitted.
func TestMutatingPolicyTargetsKilled(t *testing.T) {
	c := shared
	c.tells(t)
	c.Namespace(t, "turns", nil)
	c.Apply(t, strings.NewReplacer("rolls-out", "turns-out", "rolls", "turns").Replace(strings.Split(rollsOut, "---")[0]))
	c.Apply(t, `{apiVersion: v1, kind: ConfigMap, metadata: {name: web, namespace: turns, labels: {turns: out}}}`)
	c.serving(t, "turns-out")
	c.Apply(t, `{apiVersion: v1, kind: Secret, metadata: {name: key, namespace: turns, labels: {turns: out}}}`)
	for range 3 {
		c.restart(t)
		version := c.get(t, "v1", "Secret", "turns", "key").GetResourceVersion()
		c.await(t, "v1", "ConfigMap", "turns", "web", func(o *unstructured.Unstructured) bool { return o.GetAnnotations()["secret"] == version })
		c.merge(t, "v1", "Secret", "turns", "key", `{"metadata": {"annotations": {"turn": "`+version+`"}}}`)
	}
}

const handouts = `
apiVersion: policies.kyverno.io/v1
kind: GeneratingPolicy
metadata: {name: handouts}
spec:
  evaluation: {synchronize: {enabled: true}}
  matchConstraints:
    objectSelector: {matchLabels: {wants: handouts}}
    resourceRules: [{apiGroups: [""], apiVersions: [v1], resources: [configmaps], operations: [CREATE]}]
  variables: [{name: sources, expression: 'resource.List("v1", "secrets", "handouts-source")'}]
  generate: [{expression: 'generator.Apply(object.metadata.namespace, [variables.sources])'}]
`

// A list is copied, follows its sources, and goes with its trigger, though the process is
// killed after each.
func TestGeneratedListKilled(t *testing.T) {
	c := shared
	c.tells(t)
	c.Namespace(t, "handouts-source", nil)
	c.Namespace(t, "handouts", nil)
	for _, name := range []string{"a", "b"} {
		c.Apply(t, `{apiVersion: v1, kind: Secret, metadata: {name: `+name+`, namespace: handouts-source}, data: {key: b25l}}`)
	}
	c.Apply(t, handouts)
	c.serving(t, "handouts")
	c.Apply(t, `{apiVersion: v1, kind: ConfigMap, metadata: {name: trigger, namespace: handouts, labels: {wants: handouts}}}`)
	c.restart(t)
	for _, name := range []string{"a", "b"} {
		c.await(t, "v1", "Secret", "handouts", name, value("key", "b25l"))
	}
	c.merge(t, "v1", "Secret", "handouts-source", "b", `{"data": {"key": "dHdv"}}`)
	c.restart(t)
	c.await(t, "v1", "Secret", "handouts", "b", value("key", "dHdv"))
	if err := c.Delete(t.Context(), c.get(t, "v1", "ConfigMap", "handouts", "trigger")); err != nil {
		t.Fatal(err)
	}
	c.restart(t)
	for _, name := range []string{"a", "b"} {
		c.await(t, "v1", "Secret", "handouts", name, gone)
	}
}

const scheduled = `
apiVersion: policies.kyverno.io/v1
kind: DeletingPolicy
metadata: {name: leftovers}
spec:
  schedule: "* * * * *"
  matchConstraints:
    objectSelector: {matchLabels: {leftover: "yes"}}
    resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: ["*"], resources: [configmaps]}]
  conditions: [{name: unused, expression: "!has(object.data)"}]
---
apiVersion: policies.kyverno.io/v1
kind: PolicyException
metadata: {name: kept, namespace: default}
spec:
  policyRefs: [{name: leftovers, kind: DeletingPolicy}]
  matchConditions: [{name: name, expression: object.metadata.name == 'kept'}]
`

// What a schedule deletes goes though the process is killed in the middle, and nothing else.
func TestDeletingPolicyKilled(t *testing.T) {
	c := shared
	c.tells(t)
	c.Namespace(t, "leftovers", nil)
	const many = 300
	for i := range many {
		c.Apply(t, fmt.Sprintf(`{apiVersion: v1, kind: ConfigMap, metadata: {name: leftover-%d, namespace: leftovers, labels: {leftover: "yes"}}}`, i))
	}
	c.Apply(t, `{apiVersion: v1, kind: ConfigMap, metadata: {name: kept, namespace: leftovers, labels: {leftover: "yes"}}}`)
	c.Apply(t, `{apiVersion: v1, kind: ConfigMap, metadata: {name: used, namespace: leftovers, labels: {leftover: "yes"}}, data: {a: b}}`)
	c.Apply(t, `{apiVersion: v1, kind: ConfigMap, metadata: {name: other, namespace: leftovers}}`)
	left := func() (names []string) {
		var list corev1.ConfigMapList
		if err := c.List(t.Context(), &list, client.InNamespace("leftovers")); err != nil {
			t.Fatal(err)
		}
		for _, o := range list.Items {
			if o.Name != "kube-root-ca.crt" {
				names = append(names, o.Name)
			}
		}
		return names
	}
	c.Apply(t, scheduled)
	testcluster.Soon(t, "the first go", func() bool { return len(left()) < many })
	c.restart(t)
	t.Logf("killed with %d left", len(left()))
	testcluster.Soon(t, "all go that are to", func() bool { return len(left()) <= 3 })
	if got := left(); !slices.Equal(got, []string{"kept", "other", "used"}) {
		t.Errorf("left are %v", got)
	}
	c.gone(t, "DeletingPolicy", "", "leftovers")
	c.gone(t, "PolicyException", "default", "kept")
}
