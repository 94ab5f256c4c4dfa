//go:build e2e

package controller

import (
	"context"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kvap/kvap/api/v1alpha1"
	"github.com/kvap/kvap/test/controlplane"
	"github.com/kvap/kvap/test/e2e/testcluster"
)

// another is the same cluster by another API server.
func (c *cluster) another(t *testing.T) *cluster {
	t.Helper()
	url, err := c.plane.Another(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.plane.Retire(url); err != nil {
			t.Error(err)
		}
	})
	out := &cluster{plane: c.plane, config: c.plane.Config(controlplane.Admin)}
	out.config.Host, out.config.WarningHandler = url, rest.NoWarnings{}
	if out.Client, err = client.New(out.config, client.Options{Scheme: c.Scheme()}); err != nil {
		t.Fatal(err)
	}
	return out
}

// interrupt ends the API server until the function that is returned is called.
func (c *cluster) interrupt(t *testing.T) (resume func()) {
	t.Helper()
	if err := c.plane.Interrupt(); err != nil {
		t.Fatal(err)
	}
	away := true
	resume = func() {
		if away {
			away = false
			if err := c.plane.Resume(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	}
	t.Cleanup(func() {
		if away { // others want it
			_ = c.plane.Resume(context.Background())
		}
	})
	return resume
}

// outage is how long an API server is away: longer than attempts fail until the controller
// tells of it.
const outage = 25 * time.Second

// The controller's API server goes away while policies change, come and go by another one: what was in force stays so, and when the server is back everything is
// as the policies say, with nothing restarted.
func TestServerGoesAway(t *testing.T) {
	other := shared.another(t)
	shared.control(t, enforcing())
	shared.apply(t, requires("changed", "owner", "Enforce"))
	shared.apply(t, requires("doomed", "cost", "Enforce"))
	shared.awaitReady(t, "ClusterPolicy", "", "changed")
	shared.awaitReady(t, "ClusterPolicy", "", "doomed")
	if err := shared.plane.Settle(t.Context()); err != nil {
		t.Fatal(err)
	}
	resume := shared.interrupt(t)
	other.apply(t, requires("changed", "team", "Enforce"))
	other.apply(t, requires("newborn", "tier", "Enforce"))
	doomed := &unstructured.Unstructured{}
	doomed.SetAPIVersion("kyverno.io/v1")
	doomed.SetKind("ClusterPolicy")
	doomed.SetName("doomed")
	other.remove(t, doomed)
	for end := time.Now().Add(outage); time.Now().Before(end); time.Sleep(time.Second) {
		if err := other.tryCreate(t.Context(), map[string]string{"team": "a", "tier": "b"}); !apierrors.IsInvalid(err) {
			t.Fatalf("what was in force is no longer: %v", err)
		}
	}
	resume()
	shared.awaitReady(t, "ClusterPolicy", "", "changed")
	shared.awaitReady(t, "ClusterPolicy", "", "newborn")
	testcluster.Soon(t, "the status of what is gone is gone", func() bool { return shared.translation(t, "doomed.clusterpolicies.kyverno.io").Name == "" })
	if err := shared.tryCreate(t.Context(), map[string]string{"team": "a", "tier": "b"}); err != nil {
		t.Errorf("the new versions: %v", err)
	}
	if err := shared.tryCreate(t.Context(), map[string]string{"team": "a"}); !apierrors.IsInvalid(err) {
		t.Errorf("the policy that came meanwhile: %v", err)
	}
}

// One of several API servers goes away while the controller talks to another: nobody
// knows what it judges by, and the policies that change meanwhile say so, with condition
// and event; the others stay as they were. When it is back, they are enforced.
func TestOneServerGoesAway(t *testing.T) {
	other := shared.another(t)
	options := enforcing()
	options.Servers = []*rest.Config{shared.plane.Config(controlplane.Admin), other.config}
	controlAs(t, other.config, options)
	shared.apply(t, requires("steady", "cost", "Audit"))
	shared.apply(t, requires("lagging", "owner", "Enforce"))
	shared.awaitReady(t, "ClusterPolicy", "", "steady")
	shared.awaitReady(t, "ClusterPolicy", "", "lagging")
	resume := shared.interrupt(t)
	other.apply(t, requires("lagging", "team", "Enforce"))
	enforced := func(name string) string {
		return other.condition(t, name+".clusterpolicies.kyverno.io", v1alpha1.ConditionEnforced).Reason
	}
	testcluster.Soon(t, "the policy says that it is not seen to be enforced", func() bool { return enforced("lagging") == "NotSeen" })
	testcluster.Soon(t, "there is an event", func() bool { return other.hasEvent(t, "lagging", "NotSeen") })
	if got := enforced("steady"); got != "Seen" {
		t.Errorf("a policy that did not change is %s", got)
	}
	resume()
	shared.awaitReady(t, "ClusterPolicy", "", "lagging")
	if err := shared.tryCreate(t.Context(), map[string]string{"owner": "a"}); !apierrors.IsInvalid(err) {
		t.Errorf("on the server that was away: %v", err)
	}
}
