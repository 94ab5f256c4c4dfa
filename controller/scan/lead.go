package scan

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/time/rate"
	apischema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/kvap/kvap/compile"
)

// A leader is a scanner while it runs, with what it knows of the cluster.
type leader struct {
	*Scanner
	queue      workqueue.TypedRateLimitingInterface[task]
	informers  sync.WaitGroup
	namespaces cache.SharedIndexInformer
	reports    [2]*reports // in namespaces, and of the cluster

	mu             sync.Mutex
	kinds          map[apischema.GroupKind]*followed
	away           map[string]bool // groups of which nothing is known
	readsNamespace bool            // some rule reads more of a Namespace than its labels
	passes         map[*pass]bool  // of the last look at everything, those that are not done
	began          time.Time       // when that was
}

// A task is an object to judge, or the next page of objects of a kind where it has no UID.
type task struct {
	kind            apischema.GroupKind
	namespace, name string
	uid             types.UID
}

func (t task) String() string {
	if t.namespace == "" {
		return t.name
	}
	return t.namespace + "/" + t.name
}

// What failed is tried again after these times, at first and at last; of all that failed so
// many a second.
const (
	minRetryDelay    = time.Second
	maxRetryDelay    = 10 * time.Minute
	retriesPerSecond = 10
)

// workers are how many objects are judged at a time: some wait for the API server, or for a service.
const workers = 4

// lead runs the informers, and the tasks that come of what they tell.
func (s *Scanner) lead(ctx context.Context) error {
	l := &leader{Scanner: s, kinds: map[apischema.GroupKind]*followed{}, passes: map[*pass]bool{}}
	defer l.wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	again := true // a process may lead several times
	tasks, err := controller.NewTypedUnmanaged("kvap-scan", controller.TypedOptions[task]{
		Reconciler: reconcile.TypedFunc[task](l.reconcile), MaxConcurrentReconciles: workers, SkipNameValidation: &again,
		Logger: logr.Discard(), // what fails is logged once
		RateLimiter: retries{
			workqueue.NewTypedItemExponentialFailureRateLimiter[task](minRetryDelay, maxRetryDelay), rate.NewLimiter(retriesPerSecond, 10*retriesPerSecond),
		},
	})
	if err != nil {
		return err
	}
	if err := tasks.Watch(source.TypedFunc[task](l.start)); err != nil {
		return err
	}
	return tasks.Start(ctx)
}

// wait waits for the informers, but not long: one may wait a minute for an API server that is away,
// and they write nothing.
func (l *leader) wait() {
	ended := make(chan struct{})
	go func() {
		l.informers.Wait()
		close(ended)
	}()
	select {
	case <-ended:
	case <-time.After(time.Second):
	}
}

// retries are when what failed is tried again. Objects take turns. A page takes none, for all objects
// of its kind wait for it.
type retries struct {
	workqueue.TypedRateLimiter[task]
	turns *rate.Limiter
}

// When is how long a task waits that failed.
func (r retries) When(t task) time.Duration {
	delay := r.TypedRateLimiter.When(t)
	if t.uid == "" {
		return delay
	}
	turn := r.turns.Reserve()
	if turn.Delay() > time.Hour { // everything is looked at before that
		turn.Cancel()
		return time.Hour
	}
	return max(delay, turn.Delay())
}

func (l *leader) start(ctx context.Context, queue workqueue.TypedRateLimitingInterface[task]) error {
	l.queue = queue
	l.namespaces = l.newNamespaces()
	for i := range l.reports {
		l.reports[i] = l.newReports(i == 0)
	}
	for _, informer := range []cache.SharedIndexInformer{l.namespaces, l.reports[0], l.reports[1]} {
		l.informers.Go(func() { informer.RunWithContext(ctx) })
	}
	for _, r := range l.reports {
		l.informers.Go(func() {
			if cache.WaitForCacheSync(ctx.Done(), r.HasSynced) {
				l.sweep(nil)
			}
		})
	}
	l.informers.Go(func() { l.follow(ctx) })
	return nil
}

// follow has objects judged by the policies that count, and all of them again when it is time.
func (l *leader) follow(ctx context.Context) {
	backoff := wait.Backoff{Duration: 5 * time.Second, Factor: 2, Jitter: 0.1, Steps: 8, Cap: maxRetryDelay}
	delay, next := backoff, time.Time{}
	for pause(ctx, l.options.Settle); ctx.Err() == nil; pause(ctx, l.options.Settle) {
		everything := !l.now().Before(next)
		complete, err := l.apply(ctx, l.latest(), everything)
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			l.log.Error(err, "scanning the objects of the cluster")
			l.metrics.failed("begin")
			l.problems.failed(err)
		} else if everything {
			next = l.now().Add(l.options.Every)
		}
		wait := next.Sub(l.now())
		if err != nil || !complete {
			wait = delay.Step()
		} else {
			delay = backoff
		}
		select {
		case <-ctx.Done():
		case <-l.changed:
			delay = backoff
		case <-time.After(wait):
		}
	}
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}

// apply has objects judged by policies, and those judged again of which rules are other ones than
// before, or all. complete is false where something has to be looked up again soon.
func (l *leader) apply(ctx context.Context, p Policies, everything bool) (complete bool, err error) {
	known, unread, err := l.known(ctx, p)
	if err != nil {
		return false, err
	}
	p.Mutations = slices.Contains(l.options.Report.List, "pass") // nothing else comes of them
	judge, err := NewJudge(p, known)
	if err != nil {
		return false, err
	}
	served, away, err := l.served()
	if err != nil {
		return false, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.away = map[string]bool{}
	for gv := range away {
		l.away[gv.Group] = true
	}
	resources := map[apischema.GroupKind]resource{}
	for _, r := range resourcesOf(p, served) {
		resources[r.groupKind()] = r
	}
	for kind, f := range l.kinds {
		if now, ok := resources[kind]; !ok && l.away[kind.Group] && len(asked(p, f.resource)) > 0 {
			resources[kind] = f.resource
		} else if now != f.resource {
			f.stop()
			delete(l.kinds, kind)
			l.passed(f.pass)
		}
	}
	if everything {
		l.began = l.now()
		clear(l.passes)
	}
	l.readsNamespace = readsNamespace(p.Compiled.Rules)
	var scans []kindScan
	for kind, r := range resources {
		f := l.kinds[kind]
		if f == nil {
			f = l.newFollowed(ctx, r)
			l.kinds[kind] = f
		}
		rules := asked(p, r)
		before, print := f.fingerprint, p.fingerprint(rules)
		held := f.lacking != nil
		f.judge, f.fingerprint, f.whole, f.lacking = judge, print, readsWhole(rules), nil
		for _, rule := range rules {
			f.lacking = cmp.Or(f.lacking, unread[rule])
		}
		anew := f.pass == nil || before != print || held && f.lacking == nil || everything && f.pass.done
		counts := (everything || l.passes[f.pass]) && f.lacking == nil
		if anew {
			delete(l.passes, f.pass)
			f.pass = newPass()
			l.queue.Add(task{kind: kind})
		}
		if counts {
			l.passes[f.pass] = true
		}
		scans = append(scans, kindScan{resource: r, rules: rules, lacking: f.lacking, anew: anew})
	}
	l.problems.begin(p, scans)
	l.informers.Go(func() { l.sweep(nil) })
	unserved := slices.ContainsFunc(p.Compiled.Rules, func(rule *compile.Rule) bool {
		return p.asks(rule) && !slices.ContainsFunc(scans, func(s kindScan) bool { return slices.Contains(s.rules, rule) })
	})
	return len(unread) == 0 && len(away) == 0 && !unserved, nil
}

// reconcile does a task. What fails for one keeps no other.
func (l *leader) reconcile(ctx context.Context, t task) (reconcile.Result, error) {
	l.mu.Lock()
	f := l.kinds[t.kind]
	l.mu.Unlock()
	var err error
	switch {
	case t.uid != "":
		err = l.object(ctx, f, t)
	case f != nil:
		err = l.nextPage(ctx, f)
	}
	if ctx.Err() != nil {
		return reconcile.Result{}, nil
	}
	if f != nil {
		l.problems.set(f.resource, t, err)
	}
	if err == nil {
		return reconcile.Result{}, nil
	}
	what := "object"
	if t.uid == "" {
		what = "resource"
	}
	l.metrics.failed(what)
	if l.queue.NumRequeues(t) == 0 {
		l.log.Info("scanning fails, and is tried again", "kind", t.kind.String(), "object", t.String(), "err", err.Error())
	}
	return reconcile.Result{}, fmt.Errorf("%s %s: %w", t.kind, t, err)
}
