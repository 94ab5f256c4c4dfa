package background

import (
	"context"
	"errors"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kvap/kvap/api/v1alpha1"
)

const (
	// The first wait after a failure, and the longest.
	firstWait, longestWait = time.Second, 5 * time.Minute
	// maxTries is how often work is tried: over some two hours.
	maxTries = 30
	// turnWait is how long work waits for other work on the same trigger.
	turnWait = 50 * time.Millisecond
	// The waits for an object that is not stored yet.
	firstLook, longestLook = 100 * time.Millisecond, 2 * time.Second
)

// waitAfter is how long to wait after so many failures.
func waitAfter(tries int) time.Duration {
	wait := firstWait
	for i := 1; i < tries && wait < longestWait; i++ {
		wait *= 2
	}
	return min(wait, longestWait)
}

// do carries the GenerateRequest out.
func (t requestTask) do(ctx context.Context, w *Worker) (again time.Duration) {
	name := string(t)
	r, err := w.options.Requests.Get(ctx, name)
	switch {
	case err != nil:
		return firstWait
	case r == nil:
		w.forget(name)
		return 0
	}
	now := w.options.Now()
	if r.Status.State == v1alpha1.GenerateFailed {
		return w.keepFailedRequest(ctx, r, now)
	}
	if next := r.Status.NextRetry; next != nil && next.After(now) {
		return min(next.Sub(now), longestWait) // whatever the clock of its writer said
	}
	// How long it is known here: when it was made says less, by another clock, and work that
	// takes a request for older than it is drops it before its object is stored.
	w.mu.Lock()
	first, known := w.known[name]
	if !known {
		first, w.known[name] = now, now
	}
	w.mu.Unlock()
	age := now.Sub(first)
	out, ok := w.inTurn(what(keyOf(r.Spec.Policy), r.Spec.Rule, r.Spec.Trigger), func() workResult { return w.carryOut(ctx, r, age) })
	switch {
	case !ok:
		return turnWait
	case errors.Is(out.err, errEarly):
		return min(max(age/2, firstLook), longestLook)
	}
	r = r.DeepCopy()
	if err := w.settle(ctx, r, out); err != nil {
		return firstWait
	}
	if out.state == v1alpha1.GenerateFailed {
		return w.keepFailedRequest(ctx, r, now)
	}
	w.forget(name)
	return 0
}

// forget lets go of a request that is done.
func (w *Worker) forget(name string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.known, name)
	delete(w.failedRequests, name)
}

// retried is when to do again what has failed; 0 if it has not, or too often. What no
// GenerateRequest stands for is counted here, and told when it fails first.
func (w *Worker) retried(t task, r *preparedRule, about v1alpha1.ObjectReference, err error) time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err == nil {
		delete(w.tries, t)
		return 0
	}
	w.tries[t]++
	n := w.tries[t]
	if n == 1 {
		w.options.Tell(Notice{Policy: r.policy.Of, Warning: true, Reason: reasonOf(err), Note: note(r.name, about, err.Error())})
	}
	if n >= maxTries { // the next look at everything finds it again
		delete(w.tries, t)
		return 0
	}
	return waitAfter(n)
}

// carryOut does what a GenerateRequest asks for.
func (w *Worker) carryOut(ctx context.Context, r *v1alpha1.GenerateRequest, age time.Duration) workResult {
	p := w.current.Load().policies[keyOf(r.Spec.Policy)]
	if len(r.Spec.Kinds) > 0 {
		return w.removeLeft(ctx, r, p)
	}
	if p == nil {
		return skipped("the policy is gone")
	}
	rule := p.rule(r.Spec.Rule)
	if rule == nil || rule.changes != (r.Spec.Type == v1alpha1.MutateExisting) {
		return skipped("the rule is gone")
	}
	if !w.mayMake(rule) {
		return workResult{err: errEarly}
	}
	return w.work(ctx, job{
		rule: rule, trigger: r.Spec.Trigger, remove: r.Spec.Delete, request: r.Spec.Request, begun: r.CreationTimestamp.Time, age: age, done: r.Status.Resources,
	})
}

// settle keeps what became of a request: one whose work is done goes, one that
// failed says so and when it is tried again.
func (w *Worker) settle(ctx context.Context, r *v1alpha1.GenerateRequest, out workResult) error {
	if out.state != v1alpha1.GenerateFailed {
		if r.Status.RetryCount > 0 {
			w.options.Tell(Notice{Policy: r.Spec.Policy, Reason: "Recovered", Note: note(r.Spec.Rule, r.Spec.Trigger, string(out.state)+" "+out.message)})
		}
		return w.options.Requests.Delete(ctx, r)
	}
	told := r.Status.Message == out.message
	r.Status.RetryCount++
	r.Status.State, r.Status.Message, r.Status.Resources, r.Status.NextRetry = v1alpha1.GeneratePending, out.message, out.resources, nil
	reason := reasonOf(out.err)
	if int(r.Status.RetryCount) >= maxTries {
		r.Status.State, told = v1alpha1.GenerateFailed, false
		out.message = "given up: " + out.message
	} else {
		next := metav1.NewTime(w.options.Now().Add(waitAfter(int(r.Status.RetryCount))))
		r.Status.NextRetry = &next
	}
	if !told {
		w.options.Tell(Notice{Policy: r.Spec.Policy, Warning: true, Reason: reason, Note: note(r.Spec.Rule, r.Spec.Trigger, out.message)})
	}
	return w.options.Requests.SetStatus(ctx, r)
}

// note says what a notice is about.
func note(rule string, trigger v1alpha1.ObjectReference, message string) string {
	name := trigger.Name
	if trigger.Kind == "" {
		return fmt.Sprintf("rule %s: %s", rule, message)
	}
	if trigger.Namespace != "" {
		name = trigger.Namespace + "/" + name
	}
	return fmt.Sprintf("rule %s, for %s %s: %s", rule, trigger.Kind, name, message)
}
