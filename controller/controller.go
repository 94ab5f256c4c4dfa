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
	bell := &bell{}
	outages := newOutages(bell.ring)
	m, err := newManager(config, options, outages.failed, logger)
	if err != nil {
		return err
	}
	if err := setUp(m, config, options, bell, outages); err != nil {
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

// setUp makes a passer, and has it make passes where this replica leads.
func setUp(m manager.Manager, config *rest.Config, options Options, bell *bell, outages *outages) error {
	p, err := newPasser(m, config, options, bell.ring, outages)
	if err != nil {
		return err
	}
	if p.reports.scanner, err = newScanner(config, options, m.GetLogger()); err != nil {
		return err
	}
	p.reports.world = options.World
	run := (&leader{passer: p, bell: bell, beside: options.Leading}).lead
	if options.LeaderElection {
		lock, err := newLock(m, options.Namespace)
		if err != nil {
			return err
		}
		run = (&election{lock: lock, follow: (&follower{passer: p, bell: bell}).follow, lead: run}).run
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

// A bell has somebody make a pass.
type bell struct {
	mu    sync.Mutex
	heard chan struct{} // for a follower
	timer *time.Timer   // of the pass that was asked for
	first time.Time     // when it was
	queue workqueue.TypedRateLimitingInterface[reconcile.Request]
}

// hang gives the bell the queue of passes, and asks for the first.
func (b *bell) hang(_ context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.queue = queue
	queue.Add(thePass())
	return nil
}

// ring asks for a pass, in a moment: changes come in crowds. While they come, the
// pass waits for more, up to a bound.
func (b *bell) ring() {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch now := time.Now(); {
	case b.queue == nil:
	case b.timer == nil:
		b.first = now
		b.timer = time.AfterFunc(settleDelay, b.pass)
	case now.Sub(b.first) < longestDelay-settleDelay && b.timer.Stop():
		b.timer = time.AfterFunc(settleDelay, b.pass)
	}
	select {
	case b.heard <- struct{}{}:
	default: // nobody follows, or it knows already
	}
}

// pass has the pass made that was asked for.
func (b *bell) pass() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.timer = nil
	b.queue.Add(thePass())
}

// listen tells of each ring.
func (b *bell) listen() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.heard = make(chan struct{}, 1)
	return b.heard
}

// thePass is the one thing in the queue.
func thePass() reconcile.Request {
	return reconcile.Request{NamespacedName: client.ObjectKey{Name: "cluster"}}
}
