//go:build e2e

package background

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kvap/kvap/api/v1alpha1"
	"github.com/kvap/kvap/test/e2e/testcluster"
)

const held = `
apiVersion: kvap.dev/v1alpha1
kind: ClusterPolicy
metadata: {name: held}
spec:
  rules:
  - name: announce
    match: {any: [{resources: {kinds: [cluster.x-k8s.io/v1beta1/Cluster], names: ["held-*"]}}]}
    generate:
      apiVersion: v1
      kind: ConfigMap
      name: "{{ request.object.metadata.name }}"
      namespace: default
      synchronize: true
      data: {data: {of: "{{ request.object.metadata.name }}"}}
`

// What is made for a trigger goes when its deletion is asked for, and is not made again
// while something holds the trigger, nor when that is gone.
func TestTriggerHeld(t *testing.T) {
	c := shared
	c.tells(t)
	c.Namespace(t, "holding", nil)
	c.Apply(t, held)
	c.serving(t, "held")
	trigger := testcluster.Read(t, `{apiVersion: cluster.x-k8s.io/v1beta1, kind: Cluster, metadata: {name: held-a, namespace: holding, finalizers: [acme.io/a, acme.io/b]}}`)[0]
	if err := c.Create(t.Context(), trigger); err != nil {
		t.Fatal(err)
	}
	c.await(t, "v1", "ConfigMap", "default", "held-a", there)
	if err := c.Delete(t.Context(), trigger); err != nil {
		t.Fatal(err)
	}
	c.await(t, "v1", "ConfigMap", "default", "held-a", gone)
	for _, rest := range []string{`["acme.io/b"]`, `[]`} {
		if err := c.Patch(t.Context(), trigger, client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":`+rest+`}}`))); err != nil {
			t.Fatal(err)
		}
		testcluster.Soon(t, "the requests are done", func() bool { return c.pending(t) == 0 })
		if o := c.get(t, "v1", "ConfigMap", "default", "held-a"); o != nil {
			t.Fatalf("it was made again with the finalizers %s", rest)
		}
	}
}

// A copy that went with its source is there again when the source is.
func TestSourceComesBack(t *testing.T) {
	c := shared
	c.tells(t)
	make := func() *unstructured.Unstructured {
		t.Helper()
		one := testcluster.Read(t, `{apiVersion: v1, kind: Secret, metadata: {name: back, namespace: default}, stringData: {token: one}}`)[0]
		if err := c.Create(t.Context(), one); err != nil {
			t.Fatal(err)
		}
		return one
	}
	source := make()
	c.Apply(t, strings.NewReplacer("name: copies", "name: backs", "copy-*", "back-*", "name: registry", "name: back").Replace(secrets))
	c.serving(t, "backs")
	c.Namespace(t, "back-one", nil)
	first := c.await(t, "v1", "Secret", "back-one", "back", there)
	if err := c.Delete(t.Context(), source); err != nil {
		t.Fatal(err)
	}
	c.await(t, "v1", "Secret", "back-one", "back", gone)
	make()
	next := c.await(t, "v1", "Secret", "back-one", "back", there)
	if next.GetUID() == first.GetUID() {
		t.Error("the copy had not gone")
	}
}

// Nobody looks after what a rule has made while that is not to be kept in step; once it
// is again, it is put right.
func TestOutOfStep(t *testing.T) {
	c := shared
	c.tells(t)
	text := strings.NewReplacer("name: quotas", "name: steps", "name: settings", "name: step", "matchLabels: {size", "matchLabels: {step").Replace(quotas)
	c.Apply(t, text)
	c.serving(t, "steps")
	c.Namespace(t, "steps", map[string]string{"size": "1", "step": "x"})
	c.await(t, "v1", "ConfigMap", "steps", "step", size("1"))
	change := func(text string) {
		t.Helper()
		next := testcluster.Read(t, text)[0]
		testcluster.Soon(t, "the policy is changed", func() bool {
			have := c.get(t, "kvap.dev/v1alpha1", "ClusterPolicy", "", "steps")
			have.Object["spec"] = next.Object["spec"]
			return c.Update(t.Context(), have) == nil
		})
		generation := c.get(t, "kvap.dev/v1alpha1", "ClusterPolicy", "", "steps").GetGeneration()
		testcluster.Soon(t, "the change is seen", func() bool {
			return c.translated(t, "steps", func(status v1alpha1.PolicyTranslationStatus) bool { return status.SourceGeneration >= generation })
		})
	}
	change(strings.Replace(text, "synchronize: true", "synchronize: false", 1))
	patch := client.RawPatch("application/merge-patch+json", []byte(`{"data":{"size":"9"}}`))
	if err := c.Patch(t.Context(), c.get(t, "v1", "ConfigMap", "steps", "step"), patch); err != nil {
		t.Fatal(err)
	}
	time.Sleep(2 * time.Second) // for what must not happen
	if o := c.get(t, "v1", "ConfigMap", "steps", "step"); !size("9")(o) {
		t.Errorf("it was repaired: %v", o)
	}
	change(text)
	c.await(t, "v1", "ConfigMap", "steps", "step", size("1"))
}

const lists = `
apiVersion: kvap.dev/v1alpha1
kind: ClusterPolicy
metadata: {name: lists}
spec:
  rules:
  - name: all
    match: {any: [{resources: {kinds: [Namespace], names: ["listed-*"]}}]}
    generate:
      namespace: "{{ request.object.metadata.name }}"
      synchronize: true
      cloneList: {namespace: lists, kinds: [v1/Secret, v1/ConfigMap], selector: {matchLabels: {share: "yes"}}}
  - name: each
    match: {any: [{resources: {kinds: [Namespace], names: ["listed-*"]}}]}
    generate:
      synchronize: true
      foreach:
      - list: "request.object.metadata.annotations.clusters | split(@, ',')"
        preconditions: {all: [{key: "{{ element }}", operator: NotEquals, value: ""}]}
        apiVersion: cluster.x-k8s.io/v1beta1
        kind: Cluster
        name: "{{ element }}-{{ elementIndex }}"
        namespace: "{{ request.object.metadata.name }}"
        data: {spec: {size: "{{ element }}"}}
`

// Lists are copied with all their kinds, and each copy follows its own source; what a
// loop makes of a custom kind is there for each element, and is repaired.
func TestLists(t *testing.T) {
	c := shared
	c.tells(t)
	c.Namespace(t, "lists", nil)
	c.Apply(t, `{apiVersion: v1, kind: Secret, metadata: {name: s, namespace: lists, labels: {share: "yes"}}, stringData: {a: b}}`)
	c.Apply(t, `{apiVersion: v1, kind: ConfigMap, metadata: {name: m, namespace: lists, labels: {share: "yes"}}, data: {size: "1"}}`)
	c.Apply(t, `{apiVersion: v1, kind: ConfigMap, metadata: {name: other, namespace: lists}, data: {size: "1"}}`)
	c.Apply(t, lists)
	c.serving(t, "lists")
	c.Apply(t, `{apiVersion: v1, kind: Namespace, metadata: {name: listed-a, annotations: {clusters: "small,,large"}}}`)
	c.await(t, "v1", "Secret", "listed-a", "s", there)
	c.await(t, "v1", "ConfigMap", "listed-a", "m", size("1"))
	for _, name := range []string{"small-0", "large-2"} {
		c.await(t, "cluster.x-k8s.io/v1beta1", "Cluster", "listed-a", name, there)
	}
	testcluster.Soon(t, "the requests are done", func() bool { return c.pending(t) == 0 })
	if c.get(t, "v1", "ConfigMap", "listed-a", "other") != nil || c.get(t, "cluster.x-k8s.io/v1beta1", "Cluster", "listed-a", "-1") != nil {
		t.Error("more was made than the rules say")
	}
	patch := client.RawPatch("application/merge-patch+json", []byte(`{"data":{"size":"2"}}`))
	if err := c.Patch(t.Context(), c.get(t, "v1", "ConfigMap", "lists", "m"), patch); err != nil {
		t.Fatal(err)
	}
	c.await(t, "v1", "ConfigMap", "listed-a", "m", size("2"))
	if err := c.Delete(t.Context(), c.get(t, "cluster.x-k8s.io/v1beta1", "Cluster", "listed-a", "large-2")); err != nil {
		t.Fatal(err)
	}
	c.await(t, "cluster.x-k8s.io/v1beta1", "Cluster", "listed-a", "large-2", there)
	if err := c.Delete(t.Context(), c.get(t, "v1", "ConfigMap", "lists", "m")); err != nil {
		t.Fatal(err)
	}
	c.await(t, "v1", "ConfigMap", "listed-a", "m", gone)
	if c.get(t, "v1", "Secret", "listed-a", "s") == nil {
		t.Error("the copy of another source is gone")
	}
}

// A process that is killed again and again while requests come has lost none of the work
// of those that were admitted.
func TestKilledUnderLoad(t *testing.T) {
	c := shared
	c.tells(t)
	c.Apply(t, creators)
	c.serving(t, "creators")
	var mu sync.Mutex
	var made []string
	next := 0
	stop := testcluster.Repeat(t, slices.Repeat([]func(context.Context){func(ctx context.Context) {
		mu.Lock()
		next++
		name := fmt.Sprintf("team-load-%d", next)
		mu.Unlock()
		o := &unstructured.Unstructured{}
		o.SetAPIVersion("v1")
		o.SetKind("Namespace")
		o.SetName(name)
		if err := c.Create(ctx, o); err != nil {
			time.Sleep(20 * time.Millisecond)
			return
		}
		mu.Lock()
		made = append(made, name)
		mu.Unlock()
	}}, 3)...)
	count := func() int {
		mu.Lock()
		defer mu.Unlock()
		return len(made)
	}
	for range 3 {
		before := count()
		testcluster.Soon(t, "namespaces are made", func() bool { return count() > before+10 })
		c.kill()
		if err := c.start(c.address); err != nil {
			t.Fatal(err)
		}
	}
	before := count()
	testcluster.Soon(t, "namespaces are made again", func() bool { return count() > before })
	stop()
	for _, name := range made {
		c.await(t, "rbac.authorization.k8s.io/v1", "RoleBinding", name, "creator", there)
	}
	t.Logf("%d namespaces of %d that were tried", len(made), next)
}
