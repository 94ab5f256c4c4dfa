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

// A passer makes passes: it brings the cluster to what its policies say.
type passer struct {
	options Options
	config  *rest.Config
	kube    kubernetes.Interface
	writer  *writer
	mu      sync.Mutex
	// mutations tells of a cluster that serves MutatingAdmissionPolicies.
	mutations bool

	// What reads, which a follower does as well.
	watcher  *watcher
	outages  *outages
	library  *library
	types    *clusterTypes
	compiler *compiler
	scribe   *scribe
	reports  *reports
	metrics  *metrics
	step     func(Step)
	now      func() time.Time
	changed  func() // asks for another pass
	begun    *atomic.Bool
	mute     *atomic.Pointer[error] // why the webhook answers nobody

	// What is known of the cluster while this replica leads.
	handover *handover
	params   *paramSync
	webhooks *webhooks
	canary   *canary
	said     map[string]string // what the last pass could not do
	late     lateness
	silent   time.Time // since when statuses are postponed; zero where they are not
}

// errNotInstalled is a cluster without the definitions of kvap's own kinds.
var errNotInstalled = errors.New("the CustomResourceDefinitions of kvap.dev are not installed")

// longestPass is how long a pass may take. It waits to hear of what was written, which may
// take for ever, as where a permission to watch is gone; then it has failed, and another
// begins.
const longestPass = 5 * time.Minute

// Reconcile makes a pass. Whatever has changed leads here. A pass that is cut short
// because the process ends has not failed.
func (p *passer) Reconcile(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	bounded, cancel := context.WithTimeout(ctx, longestPass)
	defer cancel()
	result, err := p.pass(bounded)
	if ctx.Err() != nil {
		err = nil
	}
	return result, err
}

func (p *passer) pass(ctx context.Context) (reconcile.Result, error) {
	begun := p.now()
	in, schemas, waiting, err := p.read(ctx)
	if err != nil {
		return reconcile.Result{}, err
	}
	p.step(StepCompile)
	before, err := readLive(ctx, p.handover.client, p.mutations)
	if err != nil {
		return reconcile.Result{}, err
	}
	in.taken = before.taken()
	result, err := p.compiler.compile(ctx, in, schemas)
	if err != nil {
		return reconcile.Result{}, err
	}
	p.metrics.compiled(p.now().Sub(begun))
	p.reports.scan(in, result, schemas)

	out := &outcome{
		result: result, scans: p.reports.scanner != nil, schemas: schemas, ignored: in.ignored, unheard: p.unheard(),
		served: &served{schemas: schemas, ask: discovered(p.watcher.discovery)},
	}
	again, onTheWay, err := p.bring(ctx, in, out)
	if err != nil {
		return reconcile.Result{}, err
	}
	if p.mute.Load() == nil {
		p.begun.Store(true)
	}
	if p.postpone(ctx) {
		return reconcile.Result{RequeueAfter: retryAfter}, nil
	}
	p.step(StepStatus)
	statuses, unwritten, err := p.scribe.write(ctx, in.sources, out)
	if err != nil {
		return reconcile.Result{}, err
	}
	p.metrics.passed(p.now().Sub(begun), in, out, statuses)
	p.metrics.unheard.Set(float64(len(p.outages.lasting())))
	late := out.served.late
	for kind := range out.unknown {
		late = append(late, "params "+kind.apiVersion+"/"+kind.kind)
	}
	if waiting {
		late = append(late, "policies")
	}
	return p.next(in, again || unwritten, p.late.next(late, p.now()), onTheWay), nil
}

// read is step 1.
func (p *passer) read(ctx context.Context) (in shelf, schemas *schema.Set, waiting bool, err error) {
	p.step(StepRead)
	defined, state, err := p.watcher.definitions(ctx)
	if err != nil {
		return in, nil, false, err
	}
	if err := p.watcher.updateOwn(ctx, defined); err != nil {
		return in, nil, false, err
	}
	watched, waiting, err := p.watcher.update(ctx, defined)
	if err != nil {
		return in, nil, false, err
	}
	if in, err = p.library.read(ctx, watched, p.now()); err != nil {
		return in, nil, false, err
	}
	schemas, err = p.types.of(ctx, in.sources, state)
	return in, schemas, waiting, err
}

// unheard are the policies of which no change is heard, by kind, and why.
func (p *passer) unheard() map[apischema.GroupKind]error {
	out := map[apischema.GroupKind]error{}
	for _, gvk := range p.library.watched {
		if err := p.outages.of(gvk); err != nil {
			out[gvk.GroupKind()] = err
		}
	}
	return out
}

// bring is steps 3 to 7. What fails is in the outcome, for the status, and tried
// again; step 7 waits for requests that are on their way.
func (p *passer) bring(ctx context.Context, in shelf, out *outcome) (again bool, onTheWay time.Duration, err error) {
	refs := configMapsOf(nativesOf(out.result))
	if err := p.resolve(ctx, refs, out); err != nil {
		return false, 0, err
	}
	remaining := Remaining{
		Policies: remainingOf(in.sources, out.result), Exceptions: in.exceptions, ExcludeNamespaces: p.options.ExcludeNamespaces,
	}
	wanted := wantedJudges(out.all(), out.waiting.objects)
	p.step(StepWiden)
	if p.webhooks.knowsNothing() && p.handover.isDone(ctx, wanted) {
		p.webhooks.nothingRemained()
	}
	out.fallback = p.webhooks.widen(ctx, remaining, in.sources, out.rules)
	done, err := p.handover.run(ctx, wanted, out.kept(in.sources))
	if err != nil && (ctx.Err() != nil || done.live.policies == nil) {
		return false, 0, err
	}
	if err != nil {
		log.FromContext(ctx).Error(err, "native policies")
	}
	out.live, out.failed, out.late, out.seen = done.live, done.failed, done.late, done.seen
	out.unknown = p.canary.seeParams(ctx, done.live)
	out.judges, out.parts, out.servers = p.canary.judges(done.live), p.canary.parts, p.canary.servers
	again = done.pending || done.seen != nil || len(done.failed) > 0
	if !again {
		onTheWay = p.letGo(ctx, refs, done.live.without(wanted).configMaps(), remaining, out)
	}
	p.complain(ctx, out)
	out.problems = p.webhooks.problems
	if out.fallback == nil && !remaining.Empty() && p.webhooks.absent() {
		out.fallback = errNoFallback
		return again, onTheWay, nil
	}
	return again || out.fallback != nil || out.params != nil, onTheWay, nil
}

// complain logs what a pass could not do and no status need tell, as where the policy is
// gone: once, until it changes.
func (p *passer) complain(ctx context.Context, out *outcome) {
	what := map[string]error{"the webhook": out.fallback, "params": out.params}
	for name, err := range out.failed {
		what["the native policy "+name] = err
	}
	said := map[string]string{}
	for _, about := range slices.Sorted(maps.Keys(what)) {
		if err := what[about]; err != nil {
			if said[about] = err.Error(); p.said[about] != said[about] {
				log.FromContext(ctx).Error(err, about)
			}
		}
	}
	p.said = said
}

// resolve finds the ConfigMaps that rules read, makes params of them, and finds who judges
// for want of them.
func (p *passer) resolve(ctx context.Context, refs []configMapRef, out *outcome) error {
	before, err := readLive(ctx, p.handover.client, p.mutations)
	if err != nil {
		return err
	}
	var unread map[configMapRef]error
	out.found, unread = p.params.find(ctx, refs, before.configMaps())
	if ctx.Err() != nil {
		return ctx.Err()
	}
	out.unwritten, out.params = p.params.ensure(ctx, out.found)
	for _, ref := range refs {
		out.params = firstError(out.params, unread[ref])
	}
	all, err := p.namespacesFor(ctx, nativesOf(out.result))
	if ctx.Err() != nil {
		return ctx.Err()
	}
	out.params = firstError(out.params, err) // who may not list namespaces judges as without the webhook
	lacked := out.lack(refs, all, unread)
	if !p.webhooks.absent() {
		out.result, out.waiting = waitForParams(out.result, lacked, all)
	}
	out.rules, out.natives = rulesByPolicy(out.result), nil
	return nil
}

// namespacesFor are the namespaces, where a rule denies for want of params that the webhook
// can judge by: they may have none, or take theirs along when they go.
func (p *passer) namespacesFor(ctx context.Context, natives []native) ([]namespace, error) {
	denies := func(o native) bool { return len(configMapsOfObject(o)) > 0 && deniesWithoutParams(o) }
	if p.webhooks.absent() || !slices.ContainsFunc(natives, denies) {
		return nil, nil
	}
	return p.watcher.namespaces(ctx)
}

// letGo is what comes after all native policies are seen as they are wanted: the params
// that no rule reads go, but for those that are read still by what could not be handed over,
// and the webhook serves only what remains, once no request can be on its way to it that went
// past the native policies before.
func (p *passer) letGo(ctx context.Context, refs, still []configMapRef, remaining Remaining, out *outcome) (onTheWay time.Duration) {
	if err := p.params.clean(ctx, refs, still, out.found); err != nil {
		out.params = err
	}
	if out.fallback != nil {
		return 0
	}
	if onTheWay = p.webhooks.onTheWay(remaining, p.now().Sub(p.canary.since)); onTheWay > 0 {
		return onTheWay
	}
	p.step(StepNarrow)
	out.fallback = p.webhooks.narrow(ctx, remaining)
	return 0
}

// longestSilence is how long statuses wait at most for policies to come to rest.
const longestSilence = 10 * time.Second

// postpone tells that policies have changed during the pass, so that another follows at
// once: the statuses wait for that, as what they would say is about to change.
func (p *passer) postpone(ctx context.Context) bool {
	if !p.library.isOutdated(ctx) {
		p.silent = time.Time{}
		return false
	}
	if p.silent.IsZero() {
		p.silent = p.now()
	}
	if p.now().Sub(p.silent) < longestSilence {
		return true
	}
	p.silent = time.Time{}
	return false
}

// next is when another pass is due, if nothing changes before; late is when to look again for
// what is late, and onTheWay how long requests may be on their way, zero for never.
func (p *passer) next(in shelf, again bool, late, onTheWay time.Duration) reconcile.Result {
	var wait time.Duration
	if !in.next.IsZero() {
		wait = max(time.Second, in.next.Sub(p.now()))
	}
	if p.outages.any() && (wait == 0 || wait > outageLasts) { // nobody tells that one is over
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
