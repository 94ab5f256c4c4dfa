package scan

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	apischema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kvap/kvap/compile"
	"github.com/kvap/kvap/internal/judge"
	"github.com/kvap/kvap/report"
)

// Options are the choices of a scanner.
type Options struct {
	Report report.ObjectOptions
	// Every is after how long everything is judged again.
	Every time.Duration
	// Settle is how long changes of policies gather.
	Settle time.Duration
	// Tell is told of each violation that a report has which the report before had not; nil for nobody.
	Tell func(Finding)
	// Changed is called when Problem has another answer; nil for nobody.
	Changed func()
	// Register takes the metrics; nil for none.
	Register prometheus.Registerer
}

// A Finding is what is new in the report about an object.
type Finding struct {
	Object report.ScannedObject
	Result report.ScanResult
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
	s.wake()
}

// wake has it looked at again what is to be scanned.
func (s *Scanner) wake() {
	select {
	case s.changed <- struct{}{}:
	default:
	}
}

// latest are the policies that count.
func (s *Scanner) latest() Policies {
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case <-s.changed:
	default:
	}
	return *s.policies
}

// Run keeps the reports until the context ends, beginning when there are policies. A scanner
// may run several times, one after the other.
func (s *Scanner) Run(ctx context.Context) error {
	defer s.metrics.reports.Set(0) // the next leader tells
	defer s.problems.forget()
	select {
	case <-ctx.Done():
		return nil
	case <-s.changed:
	}
	return s.lead(ctx)
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
const pageSize = 100

// page is a page of the objects of a resource.
func (s *Scanner) page(ctx context.Context, resource apischema.GroupVersionResource, token string) (*unstructured.UnstructuredList, error) {
	page, err := s.dynamic.Resource(resource).List(ctx, metav1.ListOptions{Limit: pageSize, Continue: token})
	if rest := remainder(err); rest != "" { // what is left is of a later version
		return s.page(ctx, resource, rest)
	}
	return page, err
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
func (s *Scanner) each(ctx context.Context, resource apischema.GroupVersionResource, visit func(*unstructured.Unstructured) error) error {
	for token := ""; ; {
		page, err := s.page(ctx, resource, token)
		if err != nil {
			return err
		}
		for i := range page.Items {
			if err := visit(&page.Items[i]); err != nil {
				return err
			}
		}
		if token = page.GetContinue(); token == "" {
			return nil
		}
	}
}

// known are the objects that rules look up: Namespaces, kvap's params, and the ConfigMaps that
// rules name; and why one of those cannot be read, by the rule.
func (s *Scanner) known(ctx context.Context, p Policies) (out []map[string]any, unread map[*compile.Rule]error, err error) {
	keep := func(o *unstructured.Unstructured) error {
		o.SetManagedFields(nil)
		out = append(out, o.Object)
		return nil
	}
	for _, resource := range []apischema.GroupVersionResource{namespacesResource, {Group: "kvap.dev", Version: "v1alpha1", Resource: "params"}} {
		if err := s.each(ctx, resource, keep); err != nil && !apierrors.IsNotFound(err) {
			return nil, nil, err
		}
	}
	unread = map[*compile.Rule]error{}
	looked := map[judge.Lookup]error{}
	for _, r := range p.Compiled.Rules {
		for _, l := range judge.Lookups(r) {
			key := judge.Lookup{APIVersion: l.APIVersion, Kind: l.Kind, Namespace: l.Namespace, Name: l.Name}
			if l.Kind != "ConfigMap" {
				continue
			}
			if _, ok := looked[key]; !ok {
				o, err := s.dynamic.Resource(apischema.GroupVersionResource{Version: "v1", Resource: "configmaps"}).Namespace(l.Namespace).Get(ctx, l.Name, metav1.GetOptions{})
				if err == nil {
					_ = keep(o)
				}
				looked[key] = client.IgnoreNotFound(err)
			}
			if err := looked[key]; err != nil {
				unread[r] = fmt.Errorf("the %s cannot be read: %w", l, err)
			}
		}
	}
	return out, unread, ctx.Err()
}
