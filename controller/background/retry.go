package background

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

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
		w.options.Tell(Notice{Policy: r.policy.Of, Changes: r.changes, About: about, Warning: true, Reason: reasonOf(err), Note: note(r.name, about, err.Error())})
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
	changes := r.Spec.Type == v1alpha1.MutateExisting
	if out.state != v1alpha1.GenerateFailed {
		if r.Status.RetryCount > 0 {
			w.options.Tell(Notice{Policy: r.Spec.Policy, Changes: changes, About: r.Spec.Trigger, Reason: "Recovered", Note: note(r.Spec.Rule, r.Spec.Trigger, string(out.state)+" "+out.message)})
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
		w.options.Tell(Notice{Policy: r.Spec.Policy, Changes: changes, About: r.Spec.Trigger, Warning: true, Reason: reason, Note: note(r.Spec.Rule, r.Spec.Trigger, out.message)})
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

// What stays of requests whose work fails: so many of a rule and in all, and so much.
// Users make them, and the store is everybody's.
const (
	maxFailingOfRule = 500
	maxFailing       = 2000
	maxFailingBytes  = 64 << 20
	// keepFailed is for how long one that was given up can be looked at.
	keepFailed = 24 * time.Hour
	// longestKept is how long to wait at most before one is looked at again.
	longestKept = time.Hour
)

// reasonDropped is the reason of a notice about work that is not tried any more.
const reasonDropped = "BackgroundDropped"

// A failedRequest is a GenerateRequest whose work has failed.
type failedRequest struct {
	request *v1alpha1.GenerateRequest // only as much as tells which it is
	rule    string                    // ruleKey
	made    time.Time
	bytes   int
	givenUp bool
}

func failedRequestOf(r *v1alpha1.GenerateRequest) failedRequest {
	out := failedRequest{
		request: &v1alpha1.GenerateRequest{
			ObjectMeta: metav1.ObjectMeta{Namespace: r.Namespace, Name: r.Name, UID: r.UID},
			Spec:       v1alpha1.GenerateRequestSpec{Policy: r.Spec.Policy, Rule: r.Spec.Rule, Trigger: r.Spec.Trigger},
		},
		rule: ruleKey(keyOf(r.Spec.Policy), r.Spec.Rule), made: r.CreationTimestamp.Time, givenUp: r.Status.State == v1alpha1.GenerateFailed,
	}
	if c := r.Spec.Request; c != nil {
		for _, raw := range []*runtime.RawExtension{c.Object, c.OldObject, c.Options} {
			if raw != nil {
				out.bytes += len(raw.Raw)
			}
		}
	}
	return out
}

// keepFailedRequest keeps a request whose work has failed, if there is room for it, and tells
// when to look at it again: when it is tried, or, if it was given up, when it goes.
func (w *Worker) keepFailedRequest(ctx context.Context, r *v1alpha1.GenerateRequest, now time.Time) (again time.Duration) {
	one := failedRequestOf(r)
	end := one.made.Add(keepFailed)
	if one.givenUp && !now.Before(end) {
		if err := w.drop(ctx, one, fmt.Sprintf("its work was given up and it has been kept for %v", keepFailed)); err != nil {
			return firstWait
		}
		return 0
	}
	w.mu.Lock()
	w.failedRequests[r.Name] = one
	if one.givenUp {
		delete(w.known, r.Name)
	}
	over := w.excess()
	w.mu.Unlock()
	for _, other := range over {
		// What cannot be removed now is found again with the next failure.
		_ = w.drop(ctx, other, "there are too many requests whose work fails; this is one of the oldest")
	}
	if one.givenUp {
		return min(end.Sub(now), longestKept)
	}
	return waitAfter(int(r.Status.RetryCount))
}

// excess are the failing requests for which there is no room: first those that were
// given up, and of them the oldest.
func (w *Worker) excess() (out []failedRequest) {
	count, all, bytes := map[string]int{}, len(w.failedRequests), 0
	var list []failedRequest
	for _, one := range w.failedRequests {
		list = append(list, one)
		count[one.rule]++
		bytes += one.bytes
	}
	if all <= maxFailingOfRule && bytes <= maxFailingBytes {
		return nil
	}
	slices.SortFunc(list, func(a, b failedRequest) int {
		if a.givenUp != b.givenUp {
			if a.givenUp {
				return -1
			}
			return 1
		}
		return cmp.Or(a.made.Compare(b.made), cmp.Compare(a.request.Name, b.request.Name))
	})
	for _, one := range list {
		if count[one.rule] > maxFailingOfRule || all > maxFailing || bytes > maxFailingBytes {
			out = append(out, one)
			count[one.rule]--
			all--
			bytes -= one.bytes
		}
	}
	return out
}

// drop removes a request whose work has failed, and tells.
func (w *Worker) drop(ctx context.Context, one failedRequest, why string) error {
	if err := w.options.Requests.Delete(ctx, one.request); err != nil {
		return err
	}
	w.forget(one.request.Name)
	spec := one.request.Spec
	w.options.Tell(Notice{Policy: spec.Policy, Changes: spec.Type == v1alpha1.MutateExisting, About: spec.Trigger, Warning: true, Reason: reasonDropped, Note: note(spec.Rule, spec.Trigger, "the GenerateRequest "+one.request.Name+" is removed: "+why)})
	return nil
}

// What may wait: so many GenerateRequests, and beyond some only small ones. Users make
// them faster than work can be done, and the store is everybody's.
const (
	maxWaiting = 5000
	manyWait   = 1000
	smallBytes = 64 << 10
	// countFor is how long a count holds.
	countFor = time.Second
)

// ErrNoRoom is work for which there is no room: a request that starts it is answered by
// its policy's failure policy, and not forgotten.
var ErrNoRoom = errors.New("too much work is waiting")

// A Backlog bounds what waits to be carried out.
type Backlog struct {
	// Count is how many GenerateRequests there are.
	Count func(ctx context.Context) (int, error)
	Now   func() time.Time
	// Counted hears of each count; it may be nil.
	Counted func(n int)

	mu   sync.Mutex
	n    int
	last time.Time
}

// Take tells whether there is room for one more. Where nobody can count there is: the
// store then answers for itself.
func (r *Backlog) Take(ctx context.Context, one *v1alpha1.GenerateRequest) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if now := r.Now(); now.Sub(r.last) >= countFor {
		n, err := r.Count(ctx)
		if err != nil {
			return nil //nolint:nilerr // it says why
		}
		r.n, r.last = n, now
		if r.Counted != nil {
			r.Counted(n)
		}
	}
	bytes := failedRequestOf(one).bytes
	switch {
	case r.n >= maxWaiting:
		return fmt.Errorf("%w: %d GenerateRequests, of at most %d", ErrNoRoom, r.n, maxWaiting)
	case r.n >= manyWait && bytes > smallBytes:
		return fmt.Errorf("%w: %d GenerateRequests, and beyond %d none of more than %d bytes", ErrNoRoom, r.n, manyWait, smallBytes)
	}
	r.n++
	return nil
}

// RequestWatch hears that GenerateRequests cannot be watched, or, with nil, that they can
// again. What requests start waits meanwhile; the watch is tried again. The policies
// that it is about are told when it begins and when it ends.
func (w *Worker) RequestWatch(err error) {
	w.mu.Lock()
	was := w.requestWatchErr
	w.requestWatchErr = err
	w.mu.Unlock()
	if (was == nil) == (err == nil) {
		return
	}
	for _, p := range w.starting() {
		n := Notice{Policy: p, Reason: "Recovered", Note: "what requests start is carried out again"}
		if err != nil {
			n = Notice{Policy: p, Warning: true, Reason: reasonOf(err), Note: waitNote(err)}
		}
		w.options.Tell(n)
	}
}

func waitNote(err error) string {
	return fmt.Sprintf("what requests start waits, for GenerateRequests cannot be watched: %v", explained(err))
}

// starting are the policies with rules that start work.
func (w *Worker) starting() (out []v1alpha1.PolicyReference) {
	current := w.current.Load()
	if current == nil {
		return nil
	}
	for _, p := range current.policies {
		if slices.ContainsFunc(p.rules, func(r *preparedRule) bool { return !r.invalid }) {
			out = append(out, p.Of)
		}
	}
	slices.SortFunc(out, func(a, b v1alpha1.PolicyReference) int { return strings.Compare(keyOf(a), keyOf(b)) })
	return out
}

// Waits is why no work is carried out, for each policy that it is about.
func (w *Worker) Waits() []Missing {
	out := w.unrecorded()
	w.mu.Lock()
	err := w.requestWatchErr
	w.mu.Unlock()
	if err == nil {
		return out
	}
	reason := ""
	if apierrors.IsForbidden(err) {
		reason = reasonForbidden
	}
	for _, p := range w.starting() {
		out = append(out, Missing{p, waitNote(err), reason})
	}
	return out
}

// unrecorded are the rules that make nothing, for what they make could not be written down.
func (w *Worker) unrecorded() (out []Missing) {
	w.mu.Lock()
	failures := maps.Clone(w.toldOf)
	w.mu.Unlock()
	for _, key := range slices.Sorted(maps.Keys(failures)) {
		policy, rule, _ := strings.Cut(key, "\n")
		if r := w.rule(ruleID{policy, rule}); r != nil && !w.mayMake(r) {
			out = append(out, Missing{r.policy.Of, note(r.name, v1alpha1.ObjectReference{}, failures[key].Error()), reasonOf(failures[key])})
		}
	}
	return out
}
