//go:build e2e

package migrate

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kvap/kvap/api/v1alpha1"
	"github.com/kvap/kvap/test/e2e/testcluster"
)

// A ValidatingPolicy stays where it is: Kyverno is switched off in it, and on again; where
// Kyverno is to go, it becomes one of kvap.dev.
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
	c.migrate(t, 0, "enforce", "labelled", "--accept", "a test", "--yes", "--settle", "2s")
	s.check(t, "enforce")
	if got := c.recordOf(t, record); got.Stage != v1alpha1.StageEnforced || got.Way != v1alpha1.WayAdmission {
		t.Errorf("the record has %+v", got)
	}
	if err := c.judged(t.Context(), probe(t, "a quota", false)); err == nil || strings.Contains(err.Error(), "kyverno.svc") {
		t.Errorf("Kyverno is asked still: %v", err)
	}
	if out := c.migrate(t, 1, "finish"); !strings.Contains(out, "kvap migrate adopt labelled first") {
		t.Error("finish does not say what goes with its definition")
	}
	c.migrate(t, 0, "adopt", "labelled", "--yes", "--settle", "2s")
	s.check(t, "adopt")
	o := &unstructured.Unstructured{}
	o.SetAPIVersion("policies.kyverno.io/v1")
	o.SetKind("ValidatingPolicy")
	if err := c.Get(t.Context(), client.ObjectKey{Name: "labelled"}, o); !apierrors.IsNotFound(err) {
		t.Errorf("Kyverno's policy is there still: %v", err)
	}
	c.migrate(t, 0, "finish")
	if err := c.judged(t.Context(), probe(t, "a quota", false)); err == nil || strings.Contains(err.Error(), "kyverno.svc") {
		t.Errorf("a policy of kvap.dev does not judge: %v", err)
	}
	c.migrate(t, 0, "rollback", "--all", "--yes", "--settle", "2s")
	s.check(t, "rollback")
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
	c.compareChanges(t)
	c.migrate(t, 0, "enforce", "stamped", "--yes", "--settle", "2s")
	if got := c.record(t, "stamped"); got.Way != v1alpha1.WayRemove {
		t.Errorf("Kyverno takes no admission: false for it; the way was %s", got.Way)
	}
	c.migrate(t, 0, "rollback", "--all", "--yes", "--settle", "2s")
	cancel()
	asking.Wait()
	if got := stamped(t.Context()); got != want {
		t.Errorf("in the end: %s", got)
	}
}

// compareChanges has compare find in the audit log that Kyverno changed objects as the
// rule does, and, where the log says otherwise, that it did not.
func (c *cluster) compareChanges(t *testing.T) {
	t.Helper()
	c.migrate(t, 1, "enforce", "stamped", "--yes")
	if out := c.migrate(t, 2, "compare", "stamped", "--verify", "0"); !strings.Contains(out, "only an audit log of the level Request") {
		t.Error("it does not say what evidence there can be")
	}
	log, err := os.ReadFile(c.Plane.AuditLog())
	if err != nil {
		t.Fatal(err)
	}
	other := filepath.Join(t.TempDir(), "audit.log")
	changed := bytes.ReplaceAll(log, []byte(`\"stamped\":\"yes\"`), []byte(`\"stamped\":\"no\"`))
	if changed = bytes.ReplaceAll(changed, []byte(`\"value\":\"yes\"`), []byte(`\"value\":\"no\"`)); bytes.Equal(log, changed) {
		t.Fatal("the log does not say what Kyverno changed")
	}
	if err := os.WriteFile(other, changed, 0o600); err != nil {
		t.Fatal(err)
	}
	if out := c.migrate(t, 1, "compare", "stamped", "--audit-log", other); !strings.Contains(out, "Kyverno's webhook: made it") {
		t.Error("it does not say what Kyverno made of the object")
	}
	if out := c.migrate(t, 1, "enforce", "stamped", "--yes"); !strings.Contains(out, "was not clean") {
		t.Error("a disagreement is no reason to refuse")
	}
	if out := c.migrate(t, 0, "compare", "stamped", "--audit-log", c.Plane.AuditLog()); !strings.Contains(lineOf(out, "stamped"), "agree") {
		t.Error("both sides make the same, and it does not say so")
	}
}
