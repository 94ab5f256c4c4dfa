package background

import (
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/kvap/kvap/api/v1alpha1"
)

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

// Waits is why no work of requests is carried out, for each policy that it is about.
func (w *Worker) Waits() []Missing {
	w.mu.Lock()
	err := w.requestWatchErr
	w.mu.Unlock()
	if err == nil {
		return nil
	}
	var out []Missing
	for _, p := range w.starting() {
		out = append(out, Missing{p, waitNote(err), !apierrors.IsForbidden(err)})
	}
	return out
}
