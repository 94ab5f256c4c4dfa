//go:build e2e

package background

import (
	"context"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kvap/kvap/test/e2e/testcluster"
)

const creators = `
apiVersion: kvap.dev/v1alpha1
kind: ClusterPolicy
metadata: {name: creators}
spec:
  background: false # its rule reads who asks
  rules:
  - name: bind
    match: {any: [{resources: {kinds: [Namespace], operations: [CREATE], names: ["team-*"]}}]}
    generate:
      apiVersion: rbac.authorization.k8s.io/v1
      kind: RoleBinding
      name: creator
      namespace: "{{ request.object.metadata.name }}"
      data:
        roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: admin}
        subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: "{{ request.userInfo.username }}"}]
`

// Whoever makes a namespace becomes its administrator.
func TestCreator(t *testing.T) {
	c := shared
	c.tells(t)
	c.Apply(t, creators)
	c.serving(t, "creators")
	c.Namespace(t, "team-red", nil)
	c.Namespace(t, "other-red", nil)
	o := c.await(t, "rbac.authorization.k8s.io/v1", "RoleBinding", "team-red", "creator", there)
	subjects, _, _ := unstructured.NestedSlice(o.Object, "subjects")
	if len(subjects) != 1 || subjects[0].(map[string]any)["name"] != "admin" {
		t.Errorf("bound: %v", subjects)
	}
	testcluster.Soon(t, "the requests are done", func() bool { return c.pending(t) == 0 })
	if c.get(t, "rbac.authorization.k8s.io/v1", "RoleBinding", "other-red", "creator") != nil {
		t.Error("a namespace that the rule is not about has a binding")
	}
}

// pending is how many GenerateRequests there are.
func (c *cluster) pending(t *testing.T) int {
	t.Helper()
	list := &unstructured.UnstructuredList{}
	list.SetAPIVersion("kvap.dev/v1alpha1")
	list.SetKind("GenerateRequestList")
	if err := c.List(t.Context(), list); err != nil {
		t.Fatal(err)
	}
	return len(list.Items)
}

const quotas = `
apiVersion: kvap.dev/v1alpha1
kind: ClusterPolicy
metadata: {name: quotas}
spec:
  generateExisting: true
  rules:
  - name: settings
    match: {any: [{resources: {kinds: [Namespace], selector: {matchLabels: {size: "*"}}}}]}
    generate:
      apiVersion: v1
      kind: ConfigMap
      name: settings
      namespace: "{{ request.object.metadata.name }}"
      synchronize: true
      data: {data: {size: "{{ request.object.metadata.labels.size }}"}}
`

func size(want string) func(*unstructured.Unstructured) bool {
	return func(o *unstructured.Unstructured) bool {
		if o == nil {
			return false
		}
		got, _, _ := unstructured.NestedString(o.Object, "data", "size")
		return got == want
	}
}

// An object is generated for what was there before the policy, follows its trigger,
// is repaired, and goes when the trigger is none any more, or the policy.
func TestInStep(t *testing.T) {
	c := shared
	c.tells(t)
	c.Namespace(t, "before", map[string]string{"size": "1"})
	c.Apply(t, quotas)
	c.serving(t, "quotas")
	c.await(t, "v1", "ConfigMap", "before", "settings", size("1"))
	c.Namespace(t, "after", map[string]string{"size": "2"})
	o := c.await(t, "v1", "ConfigMap", "after", "settings", size("2"))

	o.Object["data"] = map[string]any{"size": "9"}
	if err := c.Update(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	o = c.await(t, "v1", "ConfigMap", "after", "settings", size("2"))
	if err := c.Delete(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	c.await(t, "v1", "ConfigMap", "after", "settings", size("2"))

	c.label(t, "after", `{"metadata":{"labels":{"size":"3"}}}`)
	c.await(t, "v1", "ConfigMap", "after", "settings", size("3"))
	c.label(t, "after", `{"metadata":{"labels":{"size":null}}}`)
	c.await(t, "v1", "ConfigMap", "after", "settings", gone)

	policy := testcluster.Read(t, quotas)[0]
	if err := c.Delete(t.Context(), policy); err != nil {
		t.Fatal(err)
	}
	c.await(t, "v1", "ConfigMap", "before", "settings", gone)
}

// label changes the labels of a namespace.
func (c *cluster) label(t *testing.T, name, patch string) {
	t.Helper()
	o := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if err := c.Patch(t.Context(), o, client.RawPatch("application/merge-patch+json", []byte(patch))); err != nil {
		t.Fatal(err)
	}
}

const secrets = `
apiVersion: kvap.dev/v1alpha1
kind: ClusterPolicy
metadata: {name: copies}
spec:
  rules:
  - name: registry
    match: {any: [{resources: {kinds: [Namespace], names: ["copy-*"]}}]}
    generate:
      apiVersion: v1
      kind: Secret
      name: registry
      namespace: "{{ request.object.metadata.name }}"
      synchronize: true
      clone: {namespace: default, name: registry}
`

// A copy follows its source, and goes with it.
func TestClone(t *testing.T) {
	c := shared
	c.tells(t)
	source := testcluster.Read(t, `{apiVersion: v1, kind: Secret, metadata: {name: registry, namespace: default}, stringData: {token: one}}`)[0]
	if err := c.Create(t.Context(), source); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Delete(context.Background(), source) })
	c.Apply(t, secrets)
	c.serving(t, "copies")
	c.Namespace(t, "copy-one", nil)
	token := func(want string) func(*unstructured.Unstructured) bool {
		return func(o *unstructured.Unstructured) bool {
			if o == nil {
				return false
			}
			got, _, _ := unstructured.NestedString(o.Object, "data", "token")
			return got == want
		}
	}
	c.await(t, "v1", "Secret", "copy-one", "registry", token("b25l"))
	source = c.get(t, "v1", "Secret", "default", "registry")
	if _, labelled := source.GetLabels()["generate.kyverno.io/clone-source"]; !labelled {
		t.Errorf("the source has the labels %v", source.GetLabels())
	}
	source.Object["data"] = map[string]any{"token": "dHdv"}
	if err := c.Update(t.Context(), source); err != nil {
		t.Fatal(err)
	}
	c.await(t, "v1", "Secret", "copy-one", "registry", token("dHdv"))
	if err := c.Delete(t.Context(), source); err != nil {
		t.Fatal(err)
	}
	c.await(t, "v1", "Secret", "copy-one", "registry", gone)
}

// What a request has started is done though the process is killed when it has
// answered.
func TestKilled(t *testing.T) {
	c := shared
	c.tells(t)
	c.Apply(t, creators)
	c.serving(t, "creators")
	for i := range 3 {
		name := fmt.Sprintf("team-killed-%d", i)
		c.Namespace(t, name, nil)
		c.kill()
		if err := c.start(c.address); err != nil {
			t.Fatal(err)
		}
		c.await(t, "rbac.authorization.k8s.io/v1", "RoleBinding", name, "creator", there)
	}
}

// A policy that is deleted, or makes other objects, while nobody works has its way when
// somebody does again: what was to go goes, what is to stay stays.
func TestChangedUnseen(t *testing.T) {
	c := shared
	c.tells(t)
	kept := strings.NewReplacer("name: quotas", "name: orphans", "name: settings", "name: orphan", "synchronize: true", "synchronize: true\n      orphanDownstreamOnPolicyDelete: true").Replace(quotas)
	moved := strings.NewReplacer("name: quotas", "name: movers", "name: settings", "name: mover").Replace(quotas)
	for _, text := range []string{quotas, kept, moved} {
		c.Apply(t, text)
	}
	c.serving(t, "quotas", "orphans", "movers")
	c.Namespace(t, "unseen", map[string]string{"size": "1"})
	for _, name := range []string{"settings", "orphan", "mover"} {
		c.await(t, "v1", "ConfigMap", "unseen", name, size("1"))
	}
	c.kill()
	for _, text := range []string{quotas, kept} {
		if err := c.Delete(t.Context(), testcluster.Read(t, text)[0]); err != nil {
			t.Fatal(err)
		}
	}
	next := testcluster.Read(t, strings.Replace(moved, "  name: mover\n", "  name: moved\n", 1))[0]
	testcluster.Soon(t, "the policy is changed", func() bool {
		have := c.get(t, "kvap.dev/v1alpha1", "ClusterPolicy", "", "movers")
		have.Object["spec"] = next.Object["spec"]
		return c.Update(t.Context(), have) == nil
	})
	if err := c.start(c.address); err != nil {
		t.Fatal(err)
	}
	c.await(t, "v1", "ConfigMap", "unseen", "settings", gone)
	c.await(t, "v1", "ConfigMap", "unseen", "moved", size("1"))
	c.await(t, "v1", "ConfigMap", "unseen", "mover", func(o *unstructured.Unstructured) bool {
		return o != nil && o.GetLabels()["generate.kyverno.io/policy-name"] == ""
	})
	if c.get(t, "v1", "ConfigMap", "unseen", "orphan") == nil {
		t.Error("what was to stay is gone")
	}
}
