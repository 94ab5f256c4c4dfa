package background

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kvap/kvap/api/v1alpha1"
)

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
	w.options.Tell(Notice{Policy: spec.Policy, Warning: true, Reason: reasonDropped, Note: note(spec.Rule, spec.Trigger, "the GenerateRequest "+one.request.Name+" is removed: "+why)})
	return nil
}
