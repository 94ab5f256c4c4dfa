//go:build e2e

package controller

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kvap/kvap/controller"
	"github.com/kvap/kvap/test/e2e/testcluster"
)

// A stream asks again and again for objects that every version of the policies
// denies, and counts those that were admitted.
type stream struct {
	cancel   context.CancelFunc
	done     chan struct{}
	asked    atomic.Int64
	admitted atomic.Int64
	other    atomic.Value // an answer that is neither
}

// ask begins a stream of ConfigMaps without labels.
func (c *cluster) ask(t *testing.T) *stream {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	s := &stream{cancel: cancel, done: make(chan struct{})}
	go func() {
		defer close(s.done)
		for ctx.Err() == nil {
			err := c.Create(ctx, configMap("probe", nil), client.DryRunAll)
			s.asked.Add(1)
			switch {
			case err == nil:
				s.admitted.Add(1)
			case !apierrors.IsInvalid(err) && ctx.Err() == nil:
				s.other.Store(err.Error())
			}
		}
	}()
	t.Cleanup(func() { s.end(t) })
	return s
}

func (s *stream) end(t *testing.T) {
	t.Helper()
	if s.cancel == nil {
		return
	}
	s.cancel()
	<-s.done
	s.cancel = nil
	t.Logf("%d requests", s.asked.Load())
	if n := s.admitted.Load(); n > 0 {
		t.Errorf("%d of %d requests were admitted that every version denies", n, s.asked.Load())
	}
	if other := s.other.Load(); other != nil {
		t.Errorf("an answer: %v", other)
	}
}

// Rules move between objects and back while the stream goes on: to another action of
// their own, into packs and out of them, to other kinds and operations.
func TestNothingIsAdmittedWhileRulesMove(t *testing.T) {
	shared.control(t, enforcing())
	shared.apply(t, requires("moving", "owner", "Enforce"))
	shared.apply(t, requires("other", "team", "Audit"))
	shared.awaitReady(t, "ClusterPolicy", "", "moving")
	shared.awaitReady(t, "ClusterPolicy", "", "other")
	s := shared.ask(t)
	for i := range 12 {
		shared.apply(t, moved("moving", i))
		if i%3 == 0 {
			shared.apply(t, requires("other", "team", []string{"Audit", "Enforce"}[i/3%2]))
		}
		time.Sleep(time.Duration(100+i*200) * time.Millisecond)
		shared.awaitReady(t, "ClusterPolicy", "", "moving")
	}
	s.end(t)
}

// moved are versions of a policy that all deny a ConfigMap without the label owner,
// each by other objects.
func moved(name string, version int) string {
	kinds := []string{"ConfigMap", "ConfigMap, Secret", "ConfigMap, Service", "ConfigMap"}[version%4]
	more := []string{"", "  failurePolicy: Ignore\n", "", "  webhookConfiguration: {matchConditions: [{name: always, expression: 'true'}]}\n"}[version%4]
	return fmt.Sprintf(`apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: %s}
spec:
  validationFailureAction: Enforce
  background: false
%s  rules:
  - name: want-owner
    match: {any: [{resources: {kinds: [%s]}}]}
    validate:
      message: The label owner is missing.
      pattern: {metadata: {labels: {owner: "?*"}}}
`, name, more, kinds)
}

// movedCEL are versions of a ValidatingPolicy that do as moved does.
func movedCEL(name string, version int) string {
	resources := []string{"configmaps", "configmaps, secrets"}[version%2]
	return fmt.Sprintf(`apiVersion: policies.kyverno.io/v1
kind: ValidatingPolicy
metadata: {name: %s}
spec:
  validationActions: [Deny]
  failurePolicy: %s
  matchConstraints: {resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE, UPDATE], resources: [%s]}]}
  validations: [{expression: "object.metadata.?labels[?'owner'].hasValue()", message: The label owner is missing.}]
`, name, []string{"Fail", "Ignore"}[version%2], resources)
}

// Killed before each step, while policies are made, changed and deleted, the
// controller leaves a cluster that the next one brings to where it should be, and
// nothing is admitted in between.
func TestKilledAtEachStep(t *testing.T) {
	for step := controller.StepRead; step <= controller.StepStatus; step++ {
		t.Run(fmt.Sprint(step), func(t *testing.T) { killedAt(t, step) })
	}
}

func killedAt(t *testing.T, step controller.Step) {
	stop := shared.control(t, enforcing())
	shared.apply(t, moved("killed", 0))
	shared.apply(t, movedCEL("killed-cel", 0))
	shared.apply(t, requires("doomed", "team", "Audit"))
	shared.awaitReady(t, "ClusterPolicy", "", "killed")
	shared.awaitReady(t, "ValidatingPolicy", "", "killed-cel")
	shared.awaitReady(t, "ClusterPolicy", "", "doomed")
	stop()
	s := shared.ask(t)

	// What the killed one finds: a policy that moves, one that is new, one that goes.
	shared.apply(t, moved("killed", 1))
	shared.apply(t, movedCEL("killed-cel", 1))
	shared.apply(t, requires("newborn", "cost", "Audit"))
	doomed := &unstructured.Unstructured{}
	doomed.SetAPIVersion("kyverno.io/v1")
	doomed.SetKind("ClusterPolicy")
	doomed.SetName("doomed")
	shared.remove(t, doomed)
	shared.diesBefore(t, step)
	shared.control(t, enforcing())
	shared.awaitReady(t, "ClusterPolicy", "", "killed")
	shared.awaitReady(t, "ValidatingPolicy", "", "killed-cel")
	shared.awaitReady(t, "ClusterPolicy", "", "newborn")
	testcluster.Soon(t, "the status of what is gone is gone", func() bool { return shared.translation(t, "doomed.clusterpolicies.kyverno.io").Name == "" })
	want := []string{"killed-cel", "kvap-configmaps-audit", "kvap-configmaps-deny-ignore", "kvap-secrets-deny-ignore"}
	t.Cleanup(func() { t.Log(shared.ours(t)) })
	testcluster.Soon(t, "the objects are those that are wanted", func() bool { return slices.Equal(slices.Sorted(slices.Values(shared.ours(t))), want) })
	s.end(t)
}

// diesBefore has a controller work that kills itself before a step, or is killed when that
// is not due.
func (c *cluster) diesBefore(t *testing.T, step controller.Step) {
	t.Helper()
	cmd := c.spawn(t, fmt.Sprintf("%d/1", step))
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	select {
	case <-ended:
	case <-time.After(15 * time.Second): // the step was not due
		_ = cmd.Process.Kill()
		<-ended
	}
}
