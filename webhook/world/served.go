package world

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"

	"github.com/kvap/kvap/webhook/registration"
)

// Served is what a cluster serves, as it was when it was last asked.
type Served struct {
	client   discovery.DiscoveryInterface
	current  atomic.Pointer[registration.Table]
	changed  chan struct{}
	expected chan struct{}
}

func newServed(client discovery.DiscoveryInterface) *Served {
	return &Served{client: client, changed: make(chan struct{}, 1), expected: make(chan struct{}, 1)}
}

// Refresh asks the cluster. Groups whose server does not answer are left out.
func (s *Served) Refresh() error {
	_, lists, err := s.client.ServerGroupsAndResources()
	if err != nil && !discovery.IsGroupDiscoveryFailedError(err) {
		return err
	}
	next := resourcesOf(lists)
	before := s.current.Swap(&next)
	if before != nil && !equality.Semantic.DeepEqual(*before, next) {
		select {
		case s.changed <- struct{}{}:
		default:
		}
	}
	return nil
}

// Discover asks a cluster once what it serves.
func Discover(client discovery.DiscoveryInterface) (registration.Table, error) {
	s := newServed(client)
	err := s.Refresh()
	return s.All(), err
}

// The cluster is asked every expectInterval for an expectTime where a kind is expected.
const (
	expectInterval = time.Second
	expectTime     = 30 * time.Second
)

// Expect has the cluster asked often for a while, as when a kind is missed of which the
// definition may have come a moment ago: it is served a little later.
func (s *Served) Expect() {
	select {
	case s.expected <- struct{}{}:
	default:
	}
}

// run asks again and again: kinds come and go.
func (s *Served) run(ctx context.Context) {
	next, until := time.Now().Add(syncInterval), time.Time{}
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.expected:
			until = time.Now().Add(expectTime)
			if soon := time.Now().Add(expectInterval); soon.Before(next) {
				next = soon
			}
		case <-time.After(time.Until(next)):
			_ = s.Refresh() // what was known is known still
			next = time.Now().Add(syncInterval)
			if time.Now().Before(until) {
				next = time.Now().Add(expectInterval)
			}
		}
	}
}

// Changed yields after what is served changed.
func (s *Served) Changed() <-chan struct{} { return s.changed }

func resourcesOf(lists []*metav1.APIResourceList) registration.Table {
	var out registration.Table
	for _, list := range lists {
		version, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			continue
		}
		at := map[string]int{}
		for _, r := range list.APIResources {
			if !strings.Contains(r.Name, "/") {
				at[r.Name] = len(out)
				out = append(out, registration.Resource{Group: version.Group, Version: version.Version, Kind: r.Kind, Plural: r.Name, Namespaced: r.Namespaced})
			}
		}
		for _, r := range list.APIResources {
			if name, sub, ok := strings.Cut(r.Name, "/"); ok {
				if i, known := at[name]; known {
					out[i].Subresources = append(out[i].Subresources, sub)
				}
			}
		}
	}
	return out
}

// All are the resources, in the order of the cluster.
func (s *Served) All() registration.Table {
	if list := s.current.Load(); list != nil {
		return *list
	}
	return nil
}

// Kind is the kind of a resource.
func (s *Served) Kind(group, version, resource string) (kind string, ok bool) {
	for _, r := range s.All() {
		if r.Group == group && r.Version == version && r.Plural == resource {
			return r.Kind, true
		}
	}
	return "", false
}

// Resource is the resource of a kind.
func (w *World) Resource(_ context.Context, apiVersion, kind string) (string, error) {
	at, err := w.resource(apiVersion, kind)
	return at.resource.Resource, err
}

// resource is where objects of a kind are.
func (w *World) resource(apiVersion, kind string) (apiPath, error) {
	version, err := schema.ParseGroupVersion(apiVersion)
	if err != nil {
		return apiPath{}, err
	}
	for _, r := range w.served.All() {
		if r.Group == version.Group && r.Version == version.Version && r.Kind == kind {
			return apiPath{resource: version.WithResource(r.Plural)}, nil
		}
	}
	return apiPath{}, fmt.Errorf("the cluster serves no kind %s of %s", kind, apiVersion)
}
