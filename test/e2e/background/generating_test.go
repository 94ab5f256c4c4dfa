//go:build e2e

package background

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kvap/kvap/test/e2e/testcluster"
)

const teams = `
apiVersion: policies.kyverno.io/v1
kind: GeneratingPolicy
metadata: {name: teams}
spec:
  evaluation:
    synchronize: {enabled: true}
    generateExisting: {enabled: true}
  matchConstraints: {resourceRules: [{apiGroups: [""], apiVersions: [v1], resources: [namespaces], operations: [CREATE, UPDATE]}]}
  matchConditions: [{name: team, expression: "object.metadata.?labels[?'team'].orValue('') != ''"}]
  variables: [{name: name, expression: object.metadata.name}]
  generate:
  - expression: >-
      generator.Apply(variables.name, [{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings-" + object.metadata.labels.team}, "data": {"size": "1"}}])
  - expression: generator.Apply(variables.name, [resource.Get("v1", "secrets", "default", "pull-teams")])
  - template:
      interpolate: cel
      value: |
        apiVersion: rbac.authorization.k8s.io/v1
        kind: ClusterRole
        metadata: {name: "readers-((variables.name))"}
        rules: []
`

func value(key, want string) func(*unstructured.Unstructured) bool {
	return func(o *unstructured.Unstructured) bool {
		if o == nil {
			return false
		}
		got, _, _ := unstructured.NestedString(o.Object, "data", key)
		return got == want
	}
}

// merge changes an object.
func (c *cluster) merge(t *testing.T, apiVersion, kind, namespace, name, patch string) {
	t.Helper()
	if err := c.Patch(t.Context(), c.get(t, apiVersion, kind, namespace, name), client.RawPatch("application/merge-patch+json", []byte(patch))); err != nil {
		t.Fatal(err)
	}
}

// A GeneratingPolicy makes objects, for what is there and for what comes, keeps them in step
// with themselves, their source, their trigger and their policy, and goes with them; also
// when the program is killed between.
func TestGeneratingPolicy(t *testing.T) {
	c := shared
	c.tells(t)
	c.Apply(t, `{apiVersion: v1, kind: Secret, metadata: {name: pull-teams, namespace: default}, data: {key: b25l}}`)
	c.Namespace(t, "team-old", map[string]string{"team": "a"})
	c.Apply(t, teams)
	c.serving(t, "teams")
	c.Namespace(t, "team-new", map[string]string{"team": "a"})
	c.Namespace(t, "team-none", nil)
	for _, namespace := range []string{"team-old", "team-new"} {
		c.await(t, "v1", "ConfigMap", namespace, "settings-a", there)
		c.await(t, "v1", "Secret", namespace, "pull-teams", value("key", "b25l"))
		c.await(t, "rbac.authorization.k8s.io/v1", "ClusterRole", "", "readers-"+namespace, there)
	}

	// Somebody else changes it, and removes it.
	c.merge(t, "v1", "ConfigMap", "team-new", "settings-a", `{"data": {"size": "9"}}`)
	c.await(t, "v1", "ConfigMap", "team-new", "settings-a", value("size", "1"))
	if err := c.Delete(t.Context(), c.get(t, "v1", "ConfigMap", "team-old", "settings-a")); err != nil {
		t.Fatal(err)
	}
	c.await(t, "v1", "ConfigMap", "team-old", "settings-a", there)

	// The source changes while nobody works.
	c.kill()
	c.merge(t, "v1", "Secret", "default", "pull-teams", `{"data": {"key": "dHdv"}}`)
	if err := c.start(c.address); err != nil {
		t.Fatal(err)
	}
	c.await(t, "v1", "Secret", "team-old", "pull-teams", value("key", "dHdv"))

	// The trigger changes, and is none any more.
	c.serving(t, "teams")
	c.merge(t, "v1", "Namespace", "", "team-new", `{"metadata": {"labels": {"team": "b"}}}`)
	c.await(t, "v1", "ConfigMap", "team-new", "settings-b", there)
	c.await(t, "v1", "ConfigMap", "team-new", "settings-a", gone)
	c.merge(t, "v1", "Namespace", "", "team-new", `{"metadata": {"labels": {"team": null}}}`)
	c.await(t, "v1", "ConfigMap", "team-new", "settings-b", gone)
	c.await(t, "rbac.authorization.k8s.io/v1", "ClusterRole", "", "readers-team-new", gone)

	// The policy changes, and goes.
	next := testcluster.Read(t, strings.Replace(teams, `"settings-"`, `"options-"`, 1))[0]
	next.SetResourceVersion(c.get(t, "policies.kyverno.io/v1", "GeneratingPolicy", "", "teams").GetResourceVersion())
	if err := c.Update(t.Context(), next); err != nil {
		t.Fatal(err)
	}
	c.await(t, "v1", "ConfigMap", "team-old", "options-a", there)
	c.await(t, "v1", "ConfigMap", "team-old", "settings-a", gone)
	if err := c.Delete(t.Context(), c.get(t, "policies.kyverno.io/v1", "GeneratingPolicy", "", "teams")); err != nil {
		t.Fatal(err)
	}
	c.await(t, "v1", "ConfigMap", "team-old", "options-a", gone)
	c.await(t, "rbac.authorization.k8s.io/v1", "ClusterRole", "", "readers-team-old", gone)
	if c.get(t, "v1", "Secret", "team-old", "pull-teams") == nil {
		t.Error("a copy has gone with the policy")
	}
	testcluster.Soon(t, "the requests are done", func() bool { return c.pending(t) == 0 })
	if c.get(t, "v1", "Secret", "team-none", "pull-teams") != nil {
		t.Error("what does not trigger the policy has a copy")
	}
}

// A policy of a namespace is triggered in it, and makes nothing elsewhere.
func TestNamespacedGeneratingPolicy(t *testing.T) {
	c := shared
	c.tells(t)
	c.Namespace(t, "own-a", nil)
	c.Namespace(t, "own-b", nil)
	c.Apply(t, `
apiVersion: policies.kyverno.io/v1
kind: NamespacedGeneratingPolicy
metadata: {name: mirrors, namespace: own-a}
spec:
  evaluation: {synchronize: {enabled: true}}
  matchConstraints:
    objectSelector: {matchLabels: {mirror: "yes"}}
    resourceRules: [{apiGroups: [""], apiVersions: [v1], resources: [configmaps], operations: [CREATE]}]
  generate:
  - expression: 'generator.Apply([{"apiVersion": "v1", "kind": "Secret", "metadata": {"name": object.metadata.name, "namespace": "own-b"}}])'
`)
	c.serving(t, "mirrors")
	for _, namespace := range []string{"own-b", "own-a"} {
		c.Apply(t, `{apiVersion: v1, kind: ConfigMap, metadata: {name: m, namespace: `+namespace+`, labels: {mirror: "yes"}}}`)
	}
	c.await(t, "v1", "Secret", "own-a", "m", there)
	if c.get(t, "v1", "Secret", "own-b", "m") != nil {
		t.Error("it reaches beyond its namespace")
	}
	if err := c.Delete(t.Context(), c.get(t, "v1", "ConfigMap", "own-a", "m")); err != nil {
		t.Fatal(err)
	}
	c.await(t, "v1", "Secret", "own-a", "m", gone)
}
