package cleanup

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kvap/kvap/api/v1alpha1"
	"github.com/kvap/kvap/interp"
	"github.com/kvap/kvap/policy"
)

// The bounds of runs: how many policies run at once, how long one runs, how often one
// that failed is tried again, and how long that waits at first and at most.
const (
	runsAtOnce = 3
	runTime    = 10 * time.Minute
	tries      = 10
	firstWait  = 10 * time.Second
	longWait   = 5 * time.Minute
)

// A Runner runs the cleanup policies of a cluster. It is asked by one goroutine.
type Runner struct {
	Cluster Cluster
	Ledger  StatusStore
	Events  Events
	// World is what policies look up. It is asked for when the first policy runs.
	World func(context.Context) (interp.World, error)
	// Mode is that of policies that name none.
	Mode string
	// ExcludeNamespaces are those in which nothing is deleted by a policy.
	ExcludeNamespaces []string
	// ExceptionNamespaces are those whose exceptions count; * means all.
	ExceptionNamespaces []string
	// Limit is how many objects one run deletes at most; 0 for no limit.
	Limit int
	Now   func() time.Time

	policies map[types.UID]*Policy
	last     map[types.UID]time.Time // runs that the ledger may not show yet
	failed   map[types.UID]failure
}

// A failure is a run that is to be made again.
type failure struct {
	times int
	again time.Time
}

// A turn is a policy in one look at all of them.
type turn struct {
	policy *Policy
	have   *v1alpha1.PolicyTranslation // nil where there is none
	last   time.Time                   // when it ran last
	due    bool
	result *RunResult // nil where it did not run
}

// Tick looks at all policies, runs those that are due, and writes what is to be said
// of them.
func (r *Runner) Tick(ctx context.Context) error {
	turns, gone, err := r.read(ctx)
	if err != nil {
		return err
	}
	turning := make(chan struct{}, runsAtOnce)
	var wait sync.WaitGroup
	for _, t := range turns {
		if !t.due {
			continue
		}
		turning <- struct{}{}
		wait.Go(func() {
			defer func() { <-turning }()
			r.run(ctx, t)
		})
	}
	wait.Wait()
	if ctx.Err() != nil { // what was cut short has not run
		return ctx.Err()
	}
	for _, t := range turns {
		r.ran(t)
		if e := r.write(ctx, t); e != nil {
			err = e
		}
	}
	for _, name := range gone {
		if e := r.Ledger.Remove(ctx, name); e != nil {
			err = e
		}
	}
	return err
}

// read reads policies and ledger. gone are the entries of policies that are no more.
func (r *Runner) read(ctx context.Context) (turns []*turn, gone []string, err error) {
	objects, err := r.Cluster.Policies(ctx)
	if err != nil {
		return nil, nil, err
	}
	have, err := r.Ledger.List(ctx)
	if err != nil {
		return nil, nil, err
	}
	known := map[types.UID]*Policy{}
	now := r.Now()
	for _, o := range objects {
		p := r.policies[o.GetUID()]
		if p == nil || p.version != o.GetResourceVersion() {
			p = Read(o, r.Mode)
		}
		known[o.GetUID()] = p
		t := &turn{policy: p, have: have[p.StatusName()]}
		delete(have, p.StatusName())
		r.decide(t, now)
		turns = append(turns, t)
	}
	slices.SortFunc(turns, func(a, b *turn) int { return strings.Compare(a.policy.StatusName(), b.policy.StatusName()) })
	for name := range have {
		gone = append(gone, name)
	}
	slices.Sort(gone)
	r.forget(known)
	return turns, gone, nil
}

// forget lets go of what belongs to policies that are no more.
func (r *Runner) forget(known map[types.UID]*Policy) {
	r.policies = known
	if r.last == nil {
		r.last, r.failed = map[types.UID]time.Time{}, map[types.UID]failure{}
	}
	for uid := range r.last {
		if known[uid] == nil {
			delete(r.last, uid)
			delete(r.failed, uid)
		}
	}
}

// decide tells whether a policy runs now.
func (r *Runner) decide(t *turn, now time.Time) {
	uid := t.policy.Ref.UID
	t.last = r.last[uid]
	if t.have != nil && t.have.Spec.Source.UID == uid && t.have.Status.Cleanup != nil {
		if said := t.have.Status.Cleanup.LastExecutionTime; said != nil && said.After(t.last) {
			t.last = said.Time
		}
	}
	if !t.policy.runs() {
		return
	}
	next, err := t.policy.next(t.last)
	again := r.failed[uid].again
	t.due = err == nil && !next.After(now) || !again.IsZero() && !again.After(now)
}

// run runs a policy.
func (r *Runner) run(ctx context.Context, t *turn) {
	world, err := r.World(ctx)
	if err != nil {
		t.result = &RunResult{Failed: 1, problems: []string{"asking the cluster: " + err.Error()}}
		return
	}
	ctx, cancel := context.WithTimeout(ctx, runTime)
	defer cancel()
	exceptions, err := r.exceptions(ctx, t.policy)
	if err != nil {
		t.result = &RunResult{Failed: 1, Denied: apierrors.IsForbidden(err), problems: []string{"reading what is excepted: " + err.Error()}}
		return
	}
	one := newRun(t.policy, exceptions, r.Cluster, world, r.ExcludeNamespaces, t.policy.Mode != v1alpha1.ModeEnforce)
	one.limit = r.Limit
	result := one.do(ctx)
	t.result = &result
}

// exceptions are those from a policy that count now. One from it that cannot be read is an
// error: nobody knows what it keeps.
func (r *Runner) exceptions(ctx context.Context, p *Policy) (out []*policy.Exception, err error) {
	if p.cleanup.Deleting == nil {
		return nil, nil
	}
	all, err := r.Cluster.Exceptions(ctx)
	if err != nil {
		return nil, err
	}
	for _, o := range all {
		if !slices.Contains(r.ExceptionNamespaces, "*") && !slices.Contains(r.ExceptionNamespaces, o.GetNamespace()) {
			continue
		}
		data, err := json.Marshal(o.Object)
		if err != nil {
			return nil, err
		}
		name := o.GetNamespace() + "/" + o.GetName()
		file, found := policy.Parse(name, data)
		if len(file.Exceptions) == 0 {
			return nil, fmt.Errorf("the exception %s: %s", name, errorsIn(found))
		}
		for _, e := range file.Exceptions {
			if !e.IsFrom(&policy.Policy{Kind: p.cleanup.Kind, Name: p.cleanup.Name}) {
				continue
			}
			if e.Invalid {
				return nil, fmt.Errorf("the exception %s: %s", name, errorsIn(found))
			}
			out = append(out, e)
		}
	}
	return out, nil
}

// ran notes a run. One that failed, but for want of a permission alone, is made again:
// each time later, and not for ever. Then it counts as any other, so that the schedule
// goes on.
func (r *Runner) ran(t *turn) {
	if t.result == nil {
		return
	}
	uid, now := t.policy.Ref.UID, r.Now()
	t.last, r.last[uid] = now, now
	before := r.failed[uid]
	delete(r.failed, uid)
	if t.result.Failed == 0 || t.result.Denied || t.policy.Mode != v1alpha1.ModeEnforce || before.times+1 >= tries {
		return
	}
	wait := min(firstWait<<before.times, longWait)
	r.failed[uid] = failure{before.times + 1, now.Add(wait)}
}
