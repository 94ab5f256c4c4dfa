package controller

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	apischema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/kvap/kvap/compile"
	"github.com/kvap/kvap/schema"
)

// A reconciler makes passes: it brings the cluster to what its policies say.
type reconciler struct {
	options Options
	config  *rest.Config
	kube    kubernetes.Interface
	writer  *writer
	mu      sync.Mutex
	// mutations tells of a cluster that serves MutatingAdmissionPolicies.
	mutations bool

	// What reads, which a follower does as well.
	watcher    *watcher
	outages    *outages
	policies   *policyLister
	types      *clusterTypes
	compiler   *compiler
	statuses   *statusWriter
	reports    *reports
	metrics    *metrics
	step       func(Step)
	now        func() time.Time
	changed    func() // asks for another pass
	begun      *atomic.Bool
	webhookErr *atomic.Pointer[error] // why the webhook answers nobody

	// What is known of the cluster while this replica leads.
	handover     *handover
	params       *paramSync
	webhooks     *webhooks
	canary       *canary
	logged       map[string]string // what the last pass could not do
	late         lateBackoff
	delayedSince time.Time // since when statuses are postponed; zero where they are not
}

// errNotInstalled is a cluster without the definitions of kvap's own kinds.
var errNotInstalled = errors.New("the CustomResourceDefinitions of kvap.dev are not installed")

// longestPass is how long a pass may take. It waits to hear of what was written, which may
// take for ever, as where a permission to watch is gone; then it has failed, and another
// begins.
const longestPass = 5 * time.Minute

// Reconcile makes a pass. Whatever has changed leads here. A pass that is cut short
// because the process ends has not failed.
func (r *reconciler) Reconcile(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	bounded, cancel := context.WithTimeout(ctx, longestPass)
	defer cancel()
	result, err := r.pass(bounded)
	if ctx.Err() != nil {
		err = nil
	}
	return result, err
}

func (r *reconciler) pass(ctx context.Context) (reconcile.Result, error) {
	begun := r.now()
	in, schemas, waiting, err := r.read(ctx)
	if err != nil {
		return reconcile.Result{}, err
	}
	r.step(StepCompile)
	before, err := readState(ctx, r.handover.client, r.mutations)
	if err != nil {
		return reconcile.Result{}, err
	}
	in.taken = before.taken()
	result, err := r.compiler.compile(ctx, in, schemas)
	if err != nil {
		return reconcile.Result{}, err
	}
	r.metrics.compiled(r.now().Sub(begun))
	r.reports.scan(in, result, schemas)

	out := &passResult{
		result: result, scans: r.reports.scanner != nil, schemas: schemas, ignored: in.ignored, unheard: r.unheard(),
		served: &served{schemas: schemas, ask: discovered(r.watcher.discovery)},
	}
	again, onTheWay, err := r.bring(ctx, in, out)
	if err != nil {
		return reconcile.Result{}, err
	}
	if r.webhookErr.Load() == nil {
		r.begun.Store(true)
	}
	if r.delaysStatuses(ctx) {
		return reconcile.Result{RequeueAfter: retryAfter}, nil
	}
	r.step(StepStatus)
	statuses, unwritten, err := r.statuses.write(ctx, in.sources, out)
	if err != nil {
		return reconcile.Result{}, err
	}
	r.metrics.passed(r.now().Sub(begun), in, out, statuses)
	r.metrics.unheard.Set(float64(len(r.outages.lasting())))
	late := out.served.late
	for kind := range out.unknown {
		late = append(late, "params "+kind.apiVersion+"/"+kind.kind)
	}
	if waiting {
		late = append(late, "policies")
	}
	return r.next(in, again || unwritten, r.late.next(late, r.now()), onTheWay), nil
}

// read is step 1.
func (r *reconciler) read(ctx context.Context) (in policyList, schemas *schema.Set, waiting bool, err error) {
	r.step(StepRead)
	defined, state, err := r.watcher.definitions(ctx)
	if err != nil {
		return in, nil, false, err
	}
	if err := r.watcher.updateOwn(ctx, defined); err != nil {
		return in, nil, false, err
	}
	watched, waiting, err := r.watcher.update(ctx, defined)
	if err != nil {
		return in, nil, false, err
	}
	if in, err = r.policies.read(ctx, watched, r.now()); err != nil {
		return in, nil, false, err
	}
	schemas, err = r.types.of(ctx, in.sources, state)
	return in, schemas, waiting, err
}

// unheard are the policies of which no change is heard, by kind, and why.
func (r *reconciler) unheard() map[apischema.GroupKind]error {
	out := map[apischema.GroupKind]error{}
	for _, gvk := range r.policies.watched {
		if err := r.outages.of(gvk); err != nil {
			out[gvk.GroupKind()] = err
		}
	}
	return out
}

// bring is steps 3 to 7. What fails is in the outcome, for the status, and tried
// again; step 7 waits for requests that are on their way.
func (r *reconciler) bring(ctx context.Context, in policyList, out *passResult) (again bool, onTheWay time.Duration, err error) {
	refs := configMapsOf(nativesOf(out.result))
	if err := r.resolve(ctx, refs, out); err != nil {
		return false, 0, err
	}
	remaining := Remaining{
		Policies: remainingOf(in.sources, out.result), Exceptions: in.exceptions, ExcludeNamespaces: r.options.ExcludeNamespaces,
	}
	wanted := wantedPolicies(out.all(), out.waiting.objects)
	r.step(StepWiden)
	if r.webhooks.knowsNothing() && r.handover.isDone(ctx, wanted) {
		r.webhooks.nothingRemained()
	}
	out.fallback = r.webhooks.widen(ctx, remaining, in.sources, out.rules)
	done, err := r.handover.run(ctx, wanted, out.kept(in.sources))
	if err != nil && (ctx.Err() != nil || done.live.policies == nil) {
		return false, 0, err
	}
	if err != nil {
		log.FromContext(ctx).Error(err, "native policies")
	}
	out.live, out.failed, out.late, out.seen = done.live, done.failed, done.late, done.seen
	out.unknown = r.canary.seeParams(ctx, done.live)
	out.judges, out.parts, out.servers = r.canary.judges(done.live), r.canary.parts, r.canary.servers
	again = done.pending || done.seen != nil || len(done.failed) > 0
	if !again {
		onTheWay = r.narrow(ctx, refs, done.live.without(wanted).configMaps(), remaining, out)
	}
	r.logFailures(ctx, out)
	out.problems = r.webhooks.problems
	if out.fallback == nil && !remaining.Empty() && r.webhooks.absent() {
		out.fallback = errNoFallback
		return again, onTheWay, nil
	}
	return again || out.fallback != nil || out.params != nil, onTheWay, nil
}

// logFailures logs what a pass could not do and no status need tell, as where the policy is
// gone: once, until it changes.
func (r *reconciler) logFailures(ctx context.Context, out *passResult) {
	what := map[string]error{"the webhook": out.fallback, "params": out.params}
	for name, err := range out.failed {
		what["the native policy "+name] = err
	}
	said := map[string]string{}
	for _, about := range slices.Sorted(maps.Keys(what)) {
		if err := what[about]; err != nil {
			if said[about] = err.Error(); r.logged[about] != said[about] {
				log.FromContext(ctx).Error(err, about)
			}
		}
	}
	r.logged = said
}

// resolve finds the ConfigMaps that rules read, makes params of them, and finds who judges
// for want of them.
func (r *reconciler) resolve(ctx context.Context, refs []configMapRef, out *passResult) error {
	before, err := readState(ctx, r.handover.client, r.mutations)
	if err != nil {
		return err
	}
	var unread map[configMapRef]error
	out.found, unread = r.params.find(ctx, refs, before.configMaps())
	if ctx.Err() != nil {
		return ctx.Err()
	}
	out.unwritten, out.params = r.params.ensure(ctx, out.found)
	for _, ref := range refs {
		out.params = firstError(out.params, unread[ref])
	}
	all, err := r.namespacesFor(ctx, nativesOf(out.result))
	if ctx.Err() != nil {
		return ctx.Err()
	}
	out.params = firstError(out.params, err) // who may not list namespaces judges as without the webhook
	lacked := out.lack(refs, all, unread)
	if !r.webhooks.absent() {
		out.result, out.waiting = waitForParams(out.result, lacked, all)
	}
	out.rules, out.natives = rulesByPolicy(out.result), nil
	return nil
}

// namespacesFor are the namespaces, where a rule denies for want of params that the webhook
// can judge by: they may have none, or take theirs along when they go.
func (r *reconciler) namespacesFor(ctx context.Context, natives []compiledPolicy) ([]namespace, error) {
	denies := func(o compiledPolicy) bool { return len(configMapsOfObject(o)) > 0 && deniesWithoutParams(o) }
	if r.webhooks.absent() || !slices.ContainsFunc(natives, denies) {
		return nil, nil
	}
	return r.watcher.namespaces(ctx)
}

// narrow is what comes after all native policies are seen as they are wanted: the params
// that no rule reads go, but for those that are read still by what could not be handed over,
// and the webhook serves only what remains, once no request can be on its way to it that went
// past the native policies before.
func (r *reconciler) narrow(ctx context.Context, refs, still []configMapRef, remaining Remaining, out *passResult) (onTheWay time.Duration) {
	if err := r.params.clean(ctx, refs, still, out.found); err != nil {
		out.params = err
	}
	if out.fallback != nil {
		return 0
	}
	if onTheWay = r.webhooks.onTheWay(remaining, r.now().Sub(r.canary.since)); onTheWay > 0 {
		return onTheWay
	}
	r.step(StepNarrow)
	out.fallback = r.webhooks.narrow(ctx, remaining)
	return 0
}

// longestSilence is how long statuses wait at most for policies to come to rest.
const longestSilence = 10 * time.Second

// delaysStatuses tells that policies have changed during the pass, so that another follows at
// once: the statuses wait for that, as what they would say is about to change.
func (r *reconciler) delaysStatuses(ctx context.Context) bool {
	if !r.policies.isOutdated(ctx) {
		r.delayedSince = time.Time{}
		return false
	}
	if r.delayedSince.IsZero() {
		r.delayedSince = r.now()
	}
	if r.now().Sub(r.delayedSince) < longestSilence {
		return true
	}
	r.delayedSince = time.Time{}
	return false
}

// next is when another pass is due, if nothing changes before; late is when to look again for
// what is late, and onTheWay how long requests may be on their way, zero for never.
func (r *reconciler) next(in policyList, again bool, late, onTheWay time.Duration) reconcile.Result {
	var wait time.Duration
	if !in.next.IsZero() {
		wait = max(time.Second, in.next.Sub(r.now()))
	}
	if r.outages.any() && (wait == 0 || wait > outageLasts) { // nobody tells that one is over
		wait = outageLasts
	}
	if again {
		late = retryAfter
	}
	for _, other := range []time.Duration{late, onTheWay} {
		if other != 0 && (wait == 0 || wait > other) {
			wait = other
		}
	}
	return reconcile.Result{RequeueAfter: wait}
}

// leftRules are the rules of a policy that remain, by name as written.
func leftRules(rules []*compile.Rule) map[string]bool {
	out := map[string]bool{}
	for _, r := range rules {
		if isLeft(r) {
			out[r.Name()] = true
		}
	}
	return out
}
