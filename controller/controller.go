package controller

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
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
	"sigs.k8s.io/controller-runtime/pkg/leaderelection"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/kvap/kvap/api/v1alpha1"
	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/controller/scan"
	"github.com/kvap/kvap/vap"
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
	r, err := newReconciler(m, config, options, debouncer, outages)
	if err != nil {
		return err
	}
	run := r.claim.leads(r.lead)
	if options.LeaderElection {
		lock, err := leaderelection.NewResourceLock(m.GetConfig(), m, leaderelection.Options{
			LeaderElection: true, LeaderElectionID: leaseName, LeaderElectionNamespace: options.Namespace, RenewDeadline: leaseRenewal,
		})
		if err != nil {
			return err
		}
		run = (&election{lock: lock, follow: r.follow, lead: run}).run
	}
	err = errors.Join(
		m.Add(manager.RunnableFunc(r.listen)), m.Add(manager.RunnableFunc(run)),
		m.AddHealthzCheck("ping", healthz.Ping), m.AddReadyzCheck("caches", r.ready),
		m.AddReadyzCheck("webhook", func(*http.Request) error { return options.Ready() }),
	)
	if err != nil {
		return err
	}
	return m.Start(ctx)
}

func newScheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	all := runtime.NewSchemeBuilder(clientscheme.AddToScheme, apiextensionsv1.AddToScheme, v1alpha1.AddToScheme)
	return scheme, all.AddToScheme(scheme)
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

// Manager is the field manager of all that the controller writes, and the value of
// the label app.kubernetes.io/managed-by on all that it makes. What `kvap convert`
// writes has another value: it belongs to whoever applied it.
const Manager = "kvap-controller"

// Options are the choices of a controller.
type Options struct {
	// Mode is that of policies that name none, but for those of kvap.dev, which are
	// enforced.
	Mode string
	// Release is what the API servers are at least; the zero value asks them.
	Release cel.Release
	// Mutations says who runs the rules that mutate: MutationsAuto, which is the default,
	// MutationsNative or MutationsWebhook. With a Fallback only those become native that may
	// run twice, as they do while they are handed over.
	Mutations string
	// ExcludeNamespaces are left out by every binding. nil means the default ones.
	ExcludeNamespaces []string
	// NamespaceLimit is how many native rules, and native objects, the policies of one
	// namespace have at most; what is beyond it remains. 0 means no limit.
	NamespaceLimit int
	// ExceptionNamespaces are those whose PolicyExceptions count; * means all. Where it
	// is empty none do, as with Kyverno, which counts none unless told.
	ExceptionNamespaces []string
	// Fallback serves what has no native form; nil means NoFallback.
	Fallback Fallback
	// WebhookOwner is a ClusterRole with which the webhook configurations end; empty for
	// none.
	WebhookOwner string
	// Gone tells of a process that judged in shadow, by its name, that it has ended; nil tells
	// so of none.
	Gone func(by string) bool
	// Namespace is the controller's own, for its lease and its canaries.
	Namespace string
	// Servers are the API servers to watch policies take effect on; nil finds them by
	// the endpoints of the service kubernetes.
	Servers []*rest.Config

	// Reports is the group of the reports about objects that are there:
	// report.PolicyReports or report.OpenReports; empty for none.
	Reports string
	// ReportResults are the results that reports list besides fail, of report.OptionalResults.
	ReportResults []string
	// Found is told of each violation that is new in a report; nil tells nobody.
	Found func(of v1alpha1.PolicyReference, finding scan.Finding)
	// World is what rules without a native form look things up in, where objects are
	// scanned for reports.
	World scan.World

	// Leading runs while this replica is the one that writes, beside its passes, until
	// the context ends, and again when it is elected again. An error ends the controller.
	Leading []func(context.Context) error

	// Ready tells why nobody should be sent to this process yet, whatever the controller knows of
	// it; nil asks nobody.
	Ready func() error

	// Version is that of the program, for the metrics.
	Version string
	// Step is told of each step of a pass before it begins; nil tells nobody.
	Step func(Step)

	LeaderElection bool
	// The addresses are "0" for none.
	MetricsAddress, HealthAddress, PprofAddress string
}

// Modes are the modes of a policy.
func Modes() []string { return v1alpha1.Modes() }

// withDefaults fills in what is not set.
func (o Options) withDefaults() (Options, error) {
	o.Mode, o.Mutations, o.Namespace = cmp.Or(o.Mode, v1alpha1.ModeShadow), cmp.Or(o.Mutations, MutationsAuto), cmp.Or(o.Namespace, "default")
	o.MetricsAddress, o.HealthAddress, o.PprofAddress = cmp.Or(o.MetricsAddress, "0"), cmp.Or(o.HealthAddress, "0"), cmp.Or(o.PprofAddress, "0")
	if !slices.Contains(Modes(), o.Mode) {
		return o, fmt.Errorf("mode %q: want one of %v", o.Mode, Modes())
	}
	if o.ExcludeNamespaces == nil {
		o.ExcludeNamespaces = vap.DefaultExcludedNamespaces()
	}
	if o.Step == nil {
		o.Step = func(Step) {}
	}
	if o.Gone == nil {
		o.Gone = func(string) bool { return false }
	}
	if o.Ready == nil {
		o.Ready = func() error { return nil }
	}
	if o.Fallback == nil {
		o.Fallback = NoFallback{}
	}
	return o, nil
}

// A Step is one of the numbered steps of a pass, which doc.go lists.
type Step int

// The steps of a pass.
const (
	StepRead    Step = 1
	StepCompile Step = 2
	StepWiden   Step = 3
	StepWrite   Step = 4
	StepSee     Step = 5
	StepRemove  Step = 6
	StepNarrow  Step = 7
	StepStatus  Step = 8
)
