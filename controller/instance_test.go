package controller

import (
	"context"
	"errors"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
)

// One instance has a cluster, whichever of its replicas leads. Another one has it once the first
// is gone.
func TestOneInstance(t *testing.T) {
	leases, now := fake.NewClientset().CoordinationV1().Leases(claimNamespace), time.Now()
	of := func(namespace string) *claim {
		return &claim{leases: leases, instance: namespace, now: func() time.Time { return now }}
	}
	for i, step := range []struct {
		after    time.Duration
		instance string
		other    bool // another one has the cluster
	}{
		{0, "one", false},
		{0, "one", false},
		{time.Second, "two", true},
		{claimDuration - 2*time.Second, "two", true},
		{0, "one", false},
		{claimDuration - time.Second, "two", true},
		{2 * time.Second, "two", false},
		{0, "one", true},
	} {
		now = now.Add(step.after)
		if err := of(step.instance).take(t.Context()); errors.Is(err, errOtherInstance) != step.other || err != nil && !step.other {
			t.Errorf("step %d: %v", i, err)
		}
	}
}

// An instance that finds another one leads nothing, and says so; the claim is kept while it
// leads.
func TestStandsBy(t *testing.T) {
	leases := fake.NewClientset().CoordinationV1().Leases(claimNamespace)
	first := &claim{leases: leases, instance: "one", now: time.Now}
	led := 0
	if err := first.leads(func(context.Context) error { led++; return nil })(t.Context()); err != nil || led != 1 {
		t.Errorf("led %d times, %v", led, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	told := make(chan error, 100)
	second := &claim{leases: leases, instance: "two", now: time.Now, tell: func(why error) { told <- why }}
	ended := make(chan error)
	go func() {
		ended <- second.leads(func(context.Context) error { t.Error("the second leads"); return nil })(ctx)
	}()
	for second.standing.Load() == nil {
		time.Sleep(time.Millisecond)
	}
	if why := second.standing.Load(); !errors.Is(*why, errOtherInstance) {
		t.Errorf("it stands by for another reason: %v", *why)
	}
	if why := <-told; !errors.Is(why, errOtherInstance) {
		t.Errorf("it tells that it stands by for another reason: %v", why)
	}
	cancel() // another replica has the lease
	if err := <-ended; err != nil || second.standing.Load() != nil {
		t.Errorf("a replica that lost the lease: %v, still stands by: %v", err, second.standing.Load() != nil)
	}
	lease, err := leases.Get(t.Context(), leaseName, metav1.GetOptions{})
	if err != nil || *lease.Spec.HolderIdentity != "one" {
		t.Errorf("%+v, %v", lease, err)
	}
}
