package scan

import (
	"context"
	"errors"
	"iter"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	apischema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	"github.com/kvap/kvap/report"
)

// Options are the choices of a scanner.
type Options struct {
	Report report.ObjectOptions
	// Every is after how long everything is scanned again.
	Every time.Duration
	// Settle is how long changes of policies gather.
	Settle time.Duration
	// Changed is called when Problem has another answer; nil for nobody.
	Changed func()
	// Register takes the metrics; nil for none.
	Register prometheus.Registerer
}

// A Scanner keeps the reports of a cluster.
type Scanner struct {
	options   Options
	dynamic   dynamic.Interface
	metadata  metadata.Interface
	discovery discovery.DiscoveryInterface
	log       logr.Logger
	now       func() time.Time
	metrics   *metrics
	problems  problems

	mu       sync.Mutex
	policies *Policies
	changed  chan struct{}
}

// New makes a scanner, which does nothing before it has policies.
func New(config *rest.Config, o Options, log logr.Logger) (*Scanner, error) {
	watching := rest.CopyConfig(config)
	watching.WarningHandler = rest.NoWarnings{} // of kinds that are deprecated
	objects, err := dynamic.NewForConfig(watching)
	if err != nil {
		return nil, err
	}
	changes, err := metadata.NewForConfig(watching)
	if err != nil {
		return nil, err
	}
	served, err := discovery.NewDiscoveryClientForConfig(watching)
	if err != nil {
		return nil, err
	}
	return newScanner(objects, changes, served, o, log)
}

func newScanner(objects dynamic.Interface, changes metadata.Interface, served discovery.DiscoveryInterface, o Options, log logr.Logger) (*Scanner, error) {
	m, err := newMetrics(o.Register)
	return &Scanner{
		options: o, dynamic: objects, metadata: changes, discovery: served, log: log, now: time.Now, metrics: m,
		problems: problems{tell: o.Changed}, changed: make(chan struct{}, 1),
	}, err
}

// Set gives the policies that count from now on. It does not block.
func (s *Scanner) Set(p Policies) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.policies = &p
	s.ring()
}

// ring has the next round begin at once.
func (s *Scanner) ring() {
	select {
	case s.changed <- struct{}{}:
	default:
	}
}

// Run scans until the context ends: everything when policies have changed or it is
// time, and else what changes.
func (s *Scanner) Run(ctx context.Context) error {
	defer s.metrics.reports.Set(0) // the next leader tells
	select {
	case <-ctx.Done():
		return nil
	case <-s.changed:
	}
	delay := retryDelay
	for ctx.Err() == nil {
		pause(ctx, s.options.Settle)
		s.mu.Lock()
		policies := *s.policies
		select {
		case <-s.changed:
		default:
		}
		s.mu.Unlock()
		err := s.round(ctx, policies)
		if err == nil || ctx.Err() != nil {
			delay = retryDelay
			continue
		}
		s.log.Error(err, "scanning the objects of the cluster")
		s.metrics.failed("begin")
		s.problems.failed(err)
		pause(ctx, delay.Step())
	}
	return nil
}

// retryDelay is how long a round that cannot begin waits for the next.
var retryDelay = wait.Backoff{Duration: 5 * time.Second, Factor: 2, Jitter: 0.1, Steps: 8, Cap: maxRetryDelay}

// What failed is tried again after these times, at first and at last.
const (
	minRetryDelay = time.Second
	maxRetryDelay = 10 * time.Minute
)

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}

// round scans everything, and then what changes, until policies change or it is time
// to begin anew. An error is one of what a round begins with.
func (s *Scanner) round(ctx context.Context, p Policies) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	began := s.now()
	r, err := s.begin(ctx, p)
	if err != nil {
		return err
	}
	defer r.queue.ShutDown()
	for _, resource := range r.resources {
		r.try(ctx, task{resource: resource})
	}
	if ctx.Err() != nil {
		return nil
	}
	s.metrics.scanned(s.now().Sub(began))
	go func() {
		select {
		case <-ctx.Done():
		case <-time.After(s.options.Every):
		case <-s.changed:
			s.ring()
		}
		cancel() // what is left in the queue is of policies that do not count any more, or is in the next scan
		r.queue.ShutDown()
	}()
	for r.next(ctx) {
	}
	return nil
}

// served are the resources that the cluster serves, in their preferred versions. Some
// groups cannot be asked for while what serves them is away.
func (s *Scanner) served() (lists []*metav1.APIResourceList, away map[apischema.GroupVersion]error, err error) {
	lists, err = s.discovery.ServerPreferredResources()
	if away, ok := discovery.GroupDiscoveryFailedErrorGroups(err); ok {
		return lists, away, nil
	}
	return lists, nil, err
}

// pageSize is how many objects are read at a time.
const pageSize = 250

// pages are the objects of a resource. Where a list takes so long that the API server
// has forgotten its version, the rest of it is of a later one.
func (s *Scanner) pages(ctx context.Context, resource apischema.GroupVersionResource, o metav1.ListOptions) iter.Seq2[*unstructured.UnstructuredList, error] {
	o.Limit = pageSize
	return func(yield func(*unstructured.UnstructuredList, error) bool) {
		for {
			page, err := s.dynamic.Resource(resource).List(ctx, o)
			if rest := remainder(err); rest != "" {
				o.Continue = rest
				continue
			}
			if !yield(page, err) || err != nil {
				return
			}
			if o.Continue = page.GetContinue(); o.Continue == "" {
				return
			}
		}
	}
}

// remainder is the token by which a list of which the version is forgotten goes on.
func remainder(err error) string {
	var status apierrors.APIStatus
	if !apierrors.IsResourceExpired(err) || !errors.As(err, &status) {
		return ""
	}
	return status.Status().Continue
}

// each calls visit for each object of a resource.
func (s *Scanner) each(ctx context.Context, resource apischema.GroupVersionResource, o metav1.ListOptions, visit func(*unstructured.Unstructured) error) error {
	for page, err := range s.pages(ctx, resource, o) {
		if err != nil {
			return err
		}
		for i := range page.Items {
			if err := visit(&page.Items[i]); err != nil {
				return err
			}
		}
	}
	return nil
}
