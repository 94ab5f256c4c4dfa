package scan

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	apischema "k8s.io/apimachinery/pkg/runtime/schema"
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
}

// A Scanner keeps the reports of a cluster.
type Scanner struct {
	options   Options
	dynamic   dynamic.Interface
	metadata  metadata.Interface
	discovery discovery.DiscoveryInterface
	log       logr.Logger
	now       func() time.Time

	mu       sync.Mutex
	policies *Policies
	changed  chan struct{}
}

// New makes a scanner, which does nothing before it has policies.
func New(config *rest.Config, o Options, log logr.Logger) (*Scanner, error) {
	s := &Scanner{options: o, log: log, now: time.Now, changed: make(chan struct{}, 1)}
	watching := rest.CopyConfig(config)
	watching.WarningHandler = rest.NoWarnings{} // of kinds that are deprecated
	var err error
	if s.dynamic, err = dynamic.NewForConfig(watching); err != nil {
		return nil, err
	}
	if s.metadata, err = metadata.NewForConfig(watching); err != nil {
		return nil, err
	}
	s.discovery, err = discovery.NewDiscoveryClientForConfig(watching)
	return s, err
}

// Set gives the policies that count from now on. It does not block.
func (s *Scanner) Set(p Policies) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.policies = &p
	select {
	case s.changed <- struct{}{}:
	default:
	}
}

// Run scans until the context ends: everything when policies have changed or it is
// time, and else what changes.
func (s *Scanner) Run(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return nil
	case <-s.changed:
	}
	for ctx.Err() == nil {
		pause(ctx, s.options.Settle)
		s.mu.Lock()
		policies := *s.policies
		select {
		case <-s.changed:
		default:
		}
		s.mu.Unlock()
		if err := s.round(ctx, policies); err != nil && ctx.Err() == nil {
			s.log.Error(err, "scanning the objects of the cluster")
			pause(ctx, retryDelay)
		}
	}
	return nil
}

// retryDelay is how long a scan that failed waits.
const retryDelay = 15 * time.Second

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}

// round scans everything, and then what changes, until policies change or it is time
// to begin anew.
func (s *Scanner) round(ctx context.Context, p Policies) error {
	ctx, cancel := context.WithTimeout(ctx, s.options.Every)
	defer cancel()
	known, err := s.known(ctx, p)
	if err != nil {
		return err
	}
	judge, err := NewJudge(p, known)
	if err != nil {
		return err
	}
	reports, err := s.reports(ctx)
	if err != nil {
		return err
	}
	r := &scanRound{Scanner: s, policies: p, judge: judge, reports: reports, seen: map[string]bool{}}
	resources, err := s.resources(p)
	if err != nil {
		return err
	}
	from := map[apischema.GroupVersionResource]string{}
	for _, resource := range resources {
		version, err := r.scanAll(ctx, resource)
		if apierrors.IsForbidden(err) {
			s.log.Info("objects are not scanned, for they may not be read", "resource", resource.String(), "err", err.Error())
			continue
		}
		if err != nil {
			return fmt.Errorf("%s: %w", resource.GroupResource(), err)
		}
		from[resource] = version
	}
	if err := r.removeStale(ctx); err != nil {
		return err
	}
	return r.follow(ctx, from)
}

// resources are what there is to scan.
func (s *Scanner) resources(p Policies) ([]apischema.GroupVersionResource, error) {
	served, err := s.served()
	return resourcesOf(p, served), err
}

// served are the resources that the cluster serves, in its preferred versions.
func (s *Scanner) served() ([]*metav1.APIResourceList, error) {
	served, err := s.discovery.ServerPreferredResources()
	if err != nil && !discovery.IsGroupDiscoveryFailedError(err) {
		return nil, err
	}
	return served, nil
}

// pageSize is how many objects are read at a time.
const pageSize = 250

// each calls visit for each object of a resource, and returns the version of the list.
func (s *Scanner) each(ctx context.Context, resource apischema.GroupVersionResource, o metav1.ListOptions, visit func(*unstructured.Unstructured) error) (version string, err error) {
	o.Limit = pageSize
	for {
		page, err := s.dynamic.Resource(resource).List(ctx, o)
		if err != nil {
			return "", err
		}
		for i := range page.Items {
			if err := visit(&page.Items[i]); err != nil {
				return "", err
			}
		}
		if o.Continue = page.GetContinue(); o.Continue == "" {
			return page.GetResourceVersion(), nil
		}
	}
}
