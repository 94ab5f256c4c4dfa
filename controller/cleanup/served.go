package cleanup

import (
	"context"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"

	"github.com/kvap/kvap/policy"
)

// servedFor is how long what a cluster serves is taken to stay so.
const servedFor = time.Minute

// served is what the cluster serves, asked for now and then.
type served struct {
	client discovery.DiscoveryInterface
	now    func() time.Time

	mu  sync.Mutex
	at  time.Time
	all []Resource
}

// resources are what the cluster serves, in its order. Groups whose server does not
// answer are left out.
func (s *served) resources() ([]Resource, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if now := s.now(); s.all == nil || now.Sub(s.at) >= servedFor {
		_, lists, err := s.client.ServerGroupsAndResources()
		if err != nil && !discovery.IsGroupDiscoveryFailedError(err) {
			return nil, err
		}
		s.all, s.at = resourcesOf(lists), now
	}
	return s.all, nil
}

func resourcesOf(lists []*metav1.APIResourceList) []Resource {
	var out []Resource
	for _, l := range lists {
		gv, err := schema.ParseGroupVersion(l.GroupVersion)
		if err != nil {
			continue
		}
		for _, r := range l.APIResources {
			if !strings.Contains(r.Name, "/") {
				out = append(out, Resource{gv.WithResource(r.Name), r.Kind, r.Namespaced, r.Verbs})
			}
		}
	}
	return out
}

// Resource is the first that a kind means.
func (s *served) Resource(_ context.Context, kind policy.KindSelector) (Resource, bool, error) {
	all, err := s.resources()
	if err != nil {
		return Resource{}, false, err
	}
	for _, r := range all {
		if r.Kind == kind.Kind && policy.Wildcard(kind.Group, r.Group) && policy.Wildcard(kind.Version, r.Version) {
			return r, true, nil
		}
	}
	return Resource{}, false, nil
}

// Served implements Cluster.
func (s *served) Served(context.Context) ([]Resource, error) { return s.resources() }

// preferred are the resources, each in the version that the cluster names first.
func (s *served) preferred() ([]Resource, error) {
	all, err := s.resources()
	if err != nil {
		return nil, err
	}
	var out []Resource
	known := map[schema.GroupResource]bool{}
	for _, r := range all {
		if !known[r.GroupResource()] {
			known[r.GroupResource()] = true
			out = append(out, r)
		}
	}
	return out, nil
}
