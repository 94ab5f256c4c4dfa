package controller

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apischema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/kvap/kvap/api/v1alpha1"
	"github.com/kvap/kvap/compile"
	"github.com/kvap/kvap/controller/scan"
	"github.com/kvap/kvap/schema"
	"github.com/kvap/kvap/translate"
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
	scanner    *scan.Scanner // nil where nobody asks for reports
	metrics    *metrics
	now        func() time.Time
	debouncer  *debouncer // asks for another pass
	claim      claim      // on the cluster
	begun      atomic.Bool
	webhookErr atomic.Pointer[error] // why the webhook answers nobody
	// scannedSources are the enforced policies that the scanner has, by kind and name.
	scannedSources atomic.Pointer[map[string]v1alpha1.PolicyReference]

	// What is known of the cluster while this replica leads.
	corrections  *corrections
	handover     *handover
	params       *paramSync
	webhooks     *webhooks
	canary       *canary
	scanned      []*compile.Rule   // what the scanner has
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
	r.options.Step(StepCompile)
	before, err := readState(ctx, r.handover.client, r.mutations)
	if err != nil {
		return reconcile.Result{}, err
	}
	in.taken = before.taken()
	compiled := compileResult{schemas: schemas}
	if compiled.result, err = r.compiler.compile(ctx, in, schemas); err != nil {
		return reconcile.Result{}, err
	}
	r.metrics.compile.Observe(r.now().Sub(begun).Seconds())
	r.scan(in, compiled.result, schemas)
	compiled, params, err := r.resolve(ctx, compiled, before.configMaps(nil))
	if err != nil {
		return reconcile.Result{}, err
	}
	out, again, onTheWay, err := r.enforce(ctx, in, compiled, params)
	if err != nil {
		return reconcile.Result{}, err
	}
	if r.webhookErr.Load() == nil {
		r.begun.Store(true)
	}
	if r.delaysStatuses(ctx) {
		return reconcile.Result{RequeueAfter: retryAfter}, nil
	}
	r.options.Step(StepStatus)
	out.there, out.active, out.ignored, out.unheard = out.live.parts(), in.counting, in.ignored, r.unheard()
	if r.scanner != nil {
		out.scans = r.scanner.Problem
	}
	out.gone = r.options.Gone
	out.served = &served{schemas: schemas, ask: sync.OnceValues(func() ([]*metav1.APIResourceList, error) {
		_, lists, err := r.watcher.discovery.ServerGroupsAndResources()
		return lists, err
	})}
	r.metrics.unheard.Set(float64(r.outages.lasting())) // before statuses that say as much
	r.metrics.contested.Set(float64(r.corrections.contested()))
	statuses, unwritten, err := r.statuses.write(ctx, in.sources, out)
	if err != nil {
		return reconcile.Result{}, err
	}
	r.metrics.passed(r.now().Sub(begun), in, out, statuses)
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
	r.options.Step(StepRead)
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

// enforce is steps 3 to 7. What fails is in the result, for the status, and tried again;
// step 7 waits for requests that are on their way.
func (r *reconciler) enforce(ctx context.Context, in policyList, c compileResult, params paramResult) (out *passResult, again bool, onTheWay time.Duration, err error) {
	remaining := Remaining{
		Policies: remainingOf(in.sources, c.rules, func(_ RemainingPolicy, r *compile.Rule) bool { return isLeft(r) }), Exceptions: in.exceptions, ExcludeNamespaces: r.options.ExcludeNamespaces,
		Native: remainingOf(in.sources, c.rules, func(left RemainingPolicy, r *compile.Rule) bool { return !left.Shadow && r.Target == translate.Native }),
	}
	if remaining.Taken, err = r.webhooks.taken(ctx); err != nil {
		return nil, false, 0, err
	}
	wanted := wantedPolicies(c.all())
	r.options.Step(StepWiden)
	if r.webhooks.was == nil && r.handover.isDone(ctx, wanted) {
		r.webhooks.was = map[string]map[string]bool{} // a webhook has nothing to do with what is in force natively
	}
	fallback := r.webhooks.widen(ctx, remaining, in.sources, c.rules)
	done, err := r.handover.run(ctx, wanted, keptRules(in.sources, c.rules, fallback))
	if err != nil && (ctx.Err() != nil || done.live.policies == nil) {
		return nil, false, 0, err
	}
	if err != nil {
		log.FromContext(ctx).Error(err, "native policies")
	}
	out = &passResult{compileResult: c, paramResult: params, handoverResult: done, unknown: r.canary.seeParams(ctx, done.live)}
	out.judges, out.servers, out.parts = r.canary.judges(done.live), r.canary.servers, r.canary.parts
	again = done.pending || done.seen != nil || len(done.failed) > 0
	if !again { // all native policies are seen as they are wanted
		if err := r.params.clean(ctx, params.refs, done.live.configMaps(wanted), params.found); err != nil {
			out.params = err
		}
		if fallback == nil {
			onTheWay = r.webhooks.onTheWay(remaining, r.now().Sub(r.canary.since))
		}
		if fallback == nil && onTheWay == 0 {
			r.options.Step(StepNarrow)
			fallback = r.webhooks.narrow(ctx, remaining)
		}
	}
	r.logFailures(ctx, fallback, out.params, done.failed)
	if fallback == nil && len(remaining.Policies) > 0 && r.webhooks.absent() {
		fallback = errNoFallback // which another pass would not change
	} else {
		again = again || fallback != nil || out.params != nil
	}
	out.fallback, out.problems = fallback, r.webhooks.problems
	return out, again, onTheWay, nil
}

// logFailures logs what a pass could not do and no status need tell, as where the policy is
// gone: once, until it changes.
func (r *reconciler) logFailures(ctx context.Context, fallback, params error, native map[string]error) {
	what := map[string]error{"the webhook": fallback, "params": params}
	for name, err := range native {
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

// resolve finds the ConfigMaps that rules read, makes params of them, and leaves rules to the
// webhook that would refuse requests for want of them. before are the ConfigMaps that rules
// have read so far. What fails is in the result.
func (r *reconciler) resolve(ctx context.Context, c compileResult, before []configMapRef) (compileResult, paramResult, error) {
	out := paramResult{refs: configMapsOf(c.all())}
	var unread map[configMapRef]error
	out.found, unread = r.params.find(ctx, out.refs, before)
	if ctx.Err() != nil {
		return c, out, ctx.Err()
	}
	out.unwritten, out.params = r.params.ensure(ctx, out.found)
	for _, ref := range out.refs {
		out.params = cmp.Or(out.params, unread[ref])
	}
	// Where a rule denies for want of params, namespaces may have none, or take theirs along
	// when they go.
	var all []namespace
	denies := func(o *wantedPolicy) bool { return len(o.configMaps()) > 0 && deniesWithoutParams(o) }
	if !r.webhooks.absent() && slices.ContainsFunc(c.all(), denies) {
		var err error
		if all, err = r.watcher.namespaces(ctx); ctx.Err() != nil {
			return c, out, ctx.Err()
		}
		out.params = cmp.Or(out.params, err) // who may not list namespaces judges as without the webhook
	}
	lacked := out.lack(all, unread)
	if !r.webhooks.absent() {
		c.result, out.waiting = waitForParams(&c, lacked, all)
	}
	c.rules = rulesByPolicy(c.result)
	return c, out, nil
}

// longestSilence is how long statuses wait at most for policies to come to rest.
const longestSilence = 10 * time.Second

// delaysStatuses tells that policies have changed during the pass, so that another follows at
// once: the statuses wait for that, as what they would say is about to change.
func (r *reconciler) delaysStatuses(ctx context.Context) bool {
	outdated := r.policies.isOutdated(ctx)
	if outdated && r.delayedSince.IsZero() {
		r.delayedSince = r.now()
	}
	if outdated && r.now().Sub(r.delayedSince) < longestSilence {
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
	if len(r.outages.current()) > 0 && (wait == 0 || wait > outageLasts) { // nobody tells that one is over
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
