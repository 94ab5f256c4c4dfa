//go:build e2e

package migrate

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kvap/kvap/test/e2e/testcluster"
)

const quotaPolicy = `apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: quota}
spec:
  rules:
  - name: made
    match: {any: [{resources: {kinds: [Namespace], names: ["generated-*"]}}]}
    generate:
      apiVersion: v1
      kind: ResourceQuota
      name: made
      namespace: "{{request.object.metadata.name}}"
      synchronize: true
      data: {spec: {hard: {pods: "10"}}}`

// generatedQuotas makes namespaces, and in each what Kyverno has made for it, with its
// labels. It returns what must stay as it is.
func (c *cluster) generatedQuotas(t *testing.T, n int) map[types.UID]string {
	t.Helper()
	out := map[types.UID]string{}
	for i := range n {
		ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("generated-%d", i)}}
		if err := c.Create(t.Context(), ns); apierrors.IsAlreadyExists(err) {
			err = c.Get(t.Context(), client.ObjectKeyFromObject(ns), ns)
			if err != nil {
				t.Fatal(err)
			}
		} else if err != nil {
			t.Fatal(err)
		}
		o := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: ns.Name, Name: "made", Labels: map[string]string{
			"app.kubernetes.io/managed-by": "kyverno", "generate.kyverno.io/policy-name": "quota",
			"generate.kyverno.io/policy-namespace": "", "generate.kyverno.io/rule-name": "made",
			"generate.kyverno.io/trigger-group": "", "generate.kyverno.io/trigger-version": "v1", "generate.kyverno.io/trigger-kind": "Namespace",
			"generate.kyverno.io/trigger-namespace": "", "generate.kyverno.io/trigger-uid": string(ns.UID),
		}}}
		if err := c.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Delete(context.Background(), o) })
		out[o.UID] = o.Namespace
	}
	return out
}

// watchUIDs fails the test when one of the objects is deleted, until stop is called.
func (c *cluster) watchUIDs(t *testing.T, of map[types.UID]string) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	kube := kubernetes.NewForConfigOrDie(c.Config)
	list, err := kube.CoreV1().ResourceQuotas("").List(ctx, metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	w, err := kube.CoreV1().ResourceQuotas("").Watch(ctx, metav1.ListOptions{ResourceVersion: list.ResourceVersion})
	if err != nil {
		t.Fatal(err)
	}
	var watching sync.WaitGroup
	watching.Go(func() {
		for event := range w.ResultChan() {
			o, ok := event.Object.(*corev1.ResourceQuota)
			if !ok && ctx.Err() != nil {
				return
			}
			if !ok {
				t.Errorf("the watch ended: %v", event.Object)
				return
			}
			if ns, ours := of[o.UID]; ours && event.Type == "DELETED" {
				t.Errorf("what was generated in %s was deleted", ns)
			}
		}
	})
	stop = sync.OnceFunc(func() {
		cancel()
		watching.Wait()
	})
	t.Cleanup(stop)
	return stop
}

// What Kyverno has generated stays, as it is, whoever carries the rule out: on the way
// there and back, and where the command line is killed.
func TestGeneratedStays(t *testing.T) {
	c := shared
	c.startKyverno(t)
	c.apply(t, quotaPolicy)
	made := c.generatedQuotas(t, 3)
	stop := c.watchUIDs(t, made)
	c.control(t)
	for round := range 2 {
		c.migrateUntilKilled(t, time.Duration(500+500*round)*time.Millisecond, "enforce", "quota", "--accept", "a test", "--yes", "--settle", "1s")
		c.migrate(t, 0, "enforce", "quota", "--accept", "a test", "--yes", "--settle", "1s")
		if c.policyOf(t, "kyverno.io/v1", "quota") != nil || c.policyOf(t, "kvap.dev/v1alpha1", "quota") == nil {
			t.Fatal("kvap does not carry the policy on")
		}
		testcluster.Soon(t, "kvap keeps in step what Kyverno has generated", func() bool {
			for _, ns := range made {
				o := &corev1.ResourceQuota{}
				if err := c.Get(t.Context(), client.ObjectKey{Namespace: ns, Name: "made"}, o); err != nil {
					t.Fatal(err)
				}
				if o.Spec.Hard.Pods().String() != "10" {
					return false
				}
			}
			return true
		})
		c.migrate(t, 0, "rollback", "--all", "--yes", "--settle", "1s")
		if o := c.policyOf(t, "kyverno.io/v1", "quota"); o == nil || len(o.GetAnnotations()) > 0 {
			t.Errorf("it is not as before: %v", o)
		}
	}
	stop()
}
