//go:build e2e

package migrate

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kvap/kvap/api/v1alpha1"
	"github.com/kvap/kvap/internal/e2e/testcluster"
)

// A ValidatingPolicy stays where it is: Kyverno is switched off in it, and on again.
func TestValidatingPolicy(t *testing.T) {
	c := shared
	c.startKyverno(t)
	c.apply(t, `apiVersion: policies.kyverno.io/v1
kind: ValidatingPolicy
metadata: {name: labelled}
spec:
  matchConstraints:
    namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: shop}}
    resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [resourcequotas]}]
  validations: [{expression: "has(object.metadata.labels) && 'team' in object.metadata.labels", message: no team}]`)
	s := c.streamOf(t, "a quota")
	c.control(t)
	const record = "labelled.validatingpolicies.policies.kyverno.io"
	c.migrate(t, 0, "shadow", "--all")
	c.migrate(t, 0, "enforce", "labelled", "--accept", "a test", "--yes")
	s.check(t, "enforce")
	if got := c.recordOf(t, record); got.Stage != v1alpha1.StageEnforced || got.Way != v1alpha1.WayAdmission {
		t.Errorf("the record has %+v", got)
	}
	if err := c.judged(t.Context(), probe(t, "a quota", false)); err == nil || strings.Contains(err.Error(), "kyverno.svc") {
		t.Errorf("Kyverno is asked still: %v", err)
	}
	c.migrate(t, 0, "rollback", "--all", "--yes")
	s.check(t, "rollback")
	o := &unstructured.Unstructured{}
	o.SetAPIVersion("policies.kyverno.io/v1")
	o.SetKind("ValidatingPolicy")
	if err := c.Get(t.Context(), client.ObjectKey{Name: "labelled"}, o); err != nil {
		t.Fatal(err)
	}
	if off, known, _ := unstructured.NestedBool(o.Object, "spec", "evaluation", "admission", "enabled"); known && !off || len(o.GetAnnotations()) > 0 {
		t.Errorf("it is not as before: %v", o)
	}
}

// While Kyverno and kvap both change objects, and when only one of them does, an object
// gets what the policy wants.
func TestMutating(t *testing.T) {
	c := shared
	c.startKyverno(t)
	c.apply(t, `apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: stamped}
spec:
  rules:
  - name: stamp
    match: {any: [{resources: {kinds: [ResourceQuota], namespaces: [shop]}}]}
    mutate: {patchStrategicMerge: {metadata: {labels: {+(team): "none", stamped: "yes"}}}}`)
	stamped := func(ctx context.Context) string {
		o := probe(t, "a quota", false)
		if err := c.Create(ctx, o, client.DryRunAll); err != nil && ctx.Err() == nil {
			return err.Error()
		}
		return o.GetLabels()["stamped"] + " " + o.GetLabels()["team"]
	}
	const want = "yes none"
	testcluster.Soon(t, "Kyverno changes objects", func() bool { return stamped(t.Context()) == want })
	ctx, cancel := context.WithCancel(context.Background())
	var asking sync.WaitGroup
	asking.Go(func() {
		for n := 0; ctx.Err() == nil; n++ {
			if got := stamped(ctx); got != want && ctx.Err() == nil {
				t.Errorf("request %d: %s", n, got)
			}
			time.Sleep(10 * time.Millisecond)
		}
	})
	t.Cleanup(asking.Wait)
	t.Cleanup(cancel)
	c.control(t)
	c.migrate(t, 0, "shadow", "--all")
	c.migrate(t, 0, "enforce", "stamped", "--accept", "a test", "--yes")
	if got := c.record(t, "stamped"); got.Way != v1alpha1.WayRemove {
		t.Errorf("Kyverno takes no admission: false for it; the way was %s", got.Way)
	}
	c.migrate(t, 0, "rollback", "--all", "--yes")
	cancel()
	asking.Wait()
	if got := stamped(t.Context()); got != want {
		t.Errorf("in the end: %s", got)
	}
}
