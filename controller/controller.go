package controller

import (
	"context"
	"sync"
	"time"

	"github.com/go-logr/logr"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/kvap/kvap/api/v1alpha1"
)

// settleDelay is how long changes gather before a pass: whoever applies a folder
// of policies causes one pass, or a few.
const settleDelay = 100 * time.Millisecond

// longestDelay is how long they gather at most.
const longestDelay = 2 * time.Second

// canaryPatience is how long a pass waits for the API servers to take up what it
// wrote; they do so once a second.
const canaryPatience = 20 * time.Second

// Run keeps the cluster in step until the context ends.
func Run(ctx context.Context, config *rest.Config, options Options, logger logr.Logger) error {
	options, err := options.withDefaults()
	if err != nil {
		return err
	}
	config = rest.CopyConfig(config)
	config.QPS = -1 // the API server's own priorities and fairness see to it
	if config.UserAgent == "" {
		config.UserAgent = Manager
	}
	debouncer := &debouncer{}
	outages := newOutages(debouncer.trigger)
	m, err := newManager(config, options, outages.failed, logger)
	if err != nil {
		return err
	}
	if err := setUp(m, config, options, debouncer, outages); err != nil {
		return err
	}
	return m.Start(ctx)
}

func newScheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientscheme.AddToScheme, apiextensionsv1.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			return nil, err
		}
	}
	return scheme, nil
}

func newManager(config *rest.Config, options Options, unheard toolscache.WatchErrorHandlerWithContext, logger logr.Logger) (manager.Manager, error) {
	scheme, err := newScheme()
	if err != nil {
		return nil, err
	}
	consistent := true
	return manager.New(config, manager.Options{
		Scheme: scheme,
		Logger: logger,
		Cache: cache.Options{
			DefaultTransform:         dropLastGood, // not by kind: an API server may not serve kvap's kinds yet
			DefaultWatchErrorHandler: unheard,
		},
		Client: client.Options{Cache: &client.CacheOptions{
			Unstructured: true, EnableReadYourWritesConsistency: &consistent, // a pass begins with what the last one wrote
		}},
		Metrics:                metricsserver.Options{BindAddress: options.MetricsAddress},
		HealthProbeBindAddress: options.HealthAddress,
		PprofBindAddress:       options.PprofAddress,
	})
}

// setUp makes a reconciler, and has it make passes where this replica leads.
func setUp(m manager.Manager, config *rest.Config, options Options, debouncer *debouncer, outages *outages) error {
	p, err := newReconciler(m, config, options, debouncer, outages)
	if err != nil {
		return err
	}
	if p.reports.scanner, err = newScanner(config, options, m.GetLogger()); err != nil {
		return err
	}
	p.reports.world = options.World
	run := p.lead
	if options.LeaderElection {
		lock, err := newLock(m, options.Namespace)
		if err != nil {
			return err
		}
		run = (&election{lock: lock, follow: p.follow, lead: run}).run
	}
	for _, r := range []manager.RunnableFunc{p.listen, run} {
		if err := m.Add(r); err != nil {
			return err
		}
	}
	if err := m.AddHealthzCheck("ping", healthz.Ping); err != nil {
		return err
	}
	return m.AddReadyzCheck("caches", p.ready)
}

// A debouncer gathers changes, so that many of them lead to one pass.
type debouncer struct {
	mu    sync.Mutex
	heard chan struct{} // for a follower
	timer *time.Timer   // of the pass that was asked for
	first time.Time     // when it was
	queue workqueue.TypedRateLimitingInterface[reconcile.Request]
}

// start gives the debouncer the queue of passes, and adds the first.
func (d *debouncer) start(_ context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.queue = queue
	queue.Add(thePass())
	return nil
}

// trigger adds a pass to the queue settleDelay after the last change, and at most
// longestDelay after the first.
func (d *debouncer) trigger() {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch now := time.Now(); {
	case d.queue == nil:
	case d.timer == nil:
		d.first = now
		d.timer = time.AfterFunc(settleDelay, d.pass)
	case now.Sub(d.first) < longestDelay-settleDelay && d.timer.Stop():
		d.timer = time.AfterFunc(settleDelay, d.pass)
	}
	select {
	case d.heard <- struct{}{}:
	default: // nobody follows, or it knows already
	}
}

// pass adds the pass that trigger has announced.
func (d *debouncer) pass() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.timer = nil
	d.queue.Add(thePass())
}

// triggered has a value after each change; one, however many come before it is read.
func (d *debouncer) triggered() <-chan struct{} {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.heard = make(chan struct{}, 1)
	return d.heard
}

// thePass is the one thing in the queue.
func thePass() reconcile.Request {
	return reconcile.Request{NamespacedName: client.ObjectKey{Name: "cluster"}}
}
