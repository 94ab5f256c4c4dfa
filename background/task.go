package background

import (
	"context"
	"time"

	"github.com/kvap/kvap/api/v1alpha1"
)

// A task is an item of the queue, which has equal tasks once.
type task interface {
	// do does the task and tells when to do it again; 0 is never.
	do(ctx context.Context, w *Worker) (again time.Duration)
}

// A requestTask carries out the GenerateRequest of a name.
type requestTask string

// A recordsTask brings the records of what rules make up to date with the policies.
type recordsTask struct{}

// do tries for as long as it takes: other work waits for it.
func (t recordsTask) do(ctx context.Context, w *Worker) time.Duration {
	err := w.doRecords(ctx)
	w.mu.Lock()
	defer w.mu.Unlock()
	if err == nil {
		delete(w.tries, t)
		clear(w.toldOf)
		return 0
	}
	w.tries[t]++
	return waitAfter(w.tries[t])
}

// A ruleID is a rule as tasks name it: it outlives the policy's next version.
type ruleID struct{ policy, rule string } // policy is keyOf

// rule is the rule as it is now; nil where it is gone.
func (w *Worker) rule(id ruleID) *preparedRule {
	return w.current.Load().policies[id.policy].rule(id.rule)
}

// A scanTask looks at the objects that a rule is about, and at those that it has made.
type scanTask struct {
	ruleID
	from scanCursor // where to go on
}

func (t scanTask) do(ctx context.Context, w *Worker) time.Duration {
	r := w.rule(t.ruleID)
	if r == nil {
		return 0
	}
	next, err := w.doScan(ctx, r, t.from)
	if next != (scanCursor{}) {
		w.queue.AddAfter(scanTask{t.ruleID, next}, firstWait)
	}
	return w.retried(t, r, v1alpha1.ObjectReference{}, err)
}

// A sourceTask looks at the copies that a rule has made of an object, which has changed or
// is gone.
type sourceTask struct {
	ruleID
	source v1alpha1.ObjectReference
}

func (t sourceTask) do(ctx context.Context, w *Worker) time.Duration {
	r := w.rule(t.ruleID)
	if r == nil {
		return 0
	}
	return w.retried(t, r, t.source, w.doSource(ctx, r, t.source))
}

// A triggerTask does what a rule wants for an object that is there, without a request.
type triggerTask struct {
	ruleID
	trigger v1alpha1.ObjectReference
}

func (t triggerTask) do(ctx context.Context, w *Worker) time.Duration {
	r := w.rule(t.ruleID)
	switch {
	case r == nil:
		return 0
	case !w.mayMake(r):
		return firstLook
	}
	out, ok := w.inTurn(what(t.policy, r.name, t.trigger), func() workResult {
		return w.work(ctx, job{rule: r, trigger: t.trigger})
	})
	if !ok {
		return turnWait
	}
	if len(out.resources) > 0 && !r.changes { // which paces itself
		w.backoff.repaired(t)
	}
	return w.retried(t, r, t.trigger, out.err)
}
