//go:build e2e

package controller

import (
	"errors"
	"net/http"
	"sync/atomic"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/kvap/kvap/api/v1alpha1"
	"github.com/kvap/kvap/test/controlplane"
	"github.com/kvap/kvap/test/e2e/testcluster"
)

// A gate lets requests to an API server through, or not.
type gate struct {
	http.RoundTripper
	shut *atomic.Bool
}

func (g gate) RoundTrip(r *http.Request) (*http.Response, error) {
	if g.shut.Load() {
		return nil, errors.New("the gate is shut")
	}
	return g.RoundTripper.RoundTrip(r)
}

// Policies share native objects. A change in one of them leaves the others ready, while it
// is not seen yet that API servers judge by it: their rules are judged all the while.
func TestOthersStayReady(t *testing.T) {
	shut := &atomic.Bool{}
	gated := shared.plane.Config(controlplane.Admin)
	gated.WrapTransport = func(rt http.RoundTripper) http.RoundTripper { return gate{rt, shut} }
	options := enforcing()
	options.Servers = []*rest.Config{shared.plane.Config(controlplane.Admin), gated}
	shared.control(t, options)
	shared.apply(t, requires("stays", "owner", "Enforce"))
	shared.apply(t, requires("changes", "team", "Enforce"))
	shared.awaitReady(t, "ClusterPolicy", "", "stays")
	shared.awaitReady(t, "ClusterPolicy", "", "changes")
	if n := len(shared.ours(t)); n != 1 {
		t.Fatalf("%d native policies: they do not share one", n)
	}
	shut.Store(true)
	shared.apply(t, requires("changes", "cost", "Enforce"))
	testcluster.Soon(t, "the change is not seen", func() bool {
		return shared.condition(t, "changes.clusterpolicies.kyverno.io", v1alpha1.ConditionEnforced).Status == metav1.ConditionUnknown
	})
	for _, c := range shared.translation(t, "stays.clusterpolicies.kyverno.io").Status.Conditions {
		if c.Status != metav1.ConditionTrue {
			t.Errorf("of the other policy: %+v", c)
		}
	}
	shut.Store(false)
	shared.awaitReady(t, "ClusterPolicy", "", "changes")
}
