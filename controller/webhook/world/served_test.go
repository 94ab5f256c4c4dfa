package world

import (
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"
)

// growing is a cluster that serves one more kind once it is told to.
type growing struct {
	discovery.DiscoveryInterface
	grown atomic.Bool
}

func (g *growing) ServerGroupsAndResources() ([]*metav1.APIGroup, []*metav1.APIResourceList, error) {
	list := &metav1.APIResourceList{GroupVersion: "x.io/v1", APIResources: []metav1.APIResource{{Name: "ones", Kind: "One"}}}
	if g.grown.Load() {
		list.APIResources = append(list.APIResources, metav1.APIResource{Name: "twos", Kind: "Two"})
	}
	return nil, []*metav1.APIResourceList{list}, nil
}

// A kind that is expected is known as soon as it is served, and not when the next look
// at the cluster is due.
func TestExpected(t *testing.T) {
	cluster := &growing{}
	s := newServed(cluster)
	if err := s.Refresh(); err != nil {
		t.Fatal(err)
	}
	go s.run(t.Context())
	s.Expect()
	cluster.grown.Store(true)
	select {
	case <-s.Changed():
	case <-time.After(syncInterval / 2):
		t.Fatal("nothing has changed")
	}
	if kind, ok := (&World{served: s}).Kind("x.io", "v1", "twos"); !ok || kind != "Two" {
		t.Errorf("%q %t", kind, ok)
	}
}
