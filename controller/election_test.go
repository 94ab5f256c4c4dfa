package controller

import (
	"context"
	"errors"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// lockOf is a lease that nobody has.
func lockOf(identity string) *resourcelock.LeaseLock {
	return &resourcelock.LeaseLock{
		LeaseMeta: metav1.ObjectMeta{Namespace: "default", Name: leaseName}, Client: fake.NewClientset().CoordinationV1(),
		LockConfig: resourcelock.ResourceLockConfig{Identity: identity},
	}
}

// holderOf is who has a lease, while its elector works with it.
func holderOf(t *testing.T, lock *resourcelock.LeaseLock) string {
	t.Helper()
	own := &resourcelock.LeaseLock{LeaseMeta: lock.LeaseMeta, Client: lock.Client}
	record, _, err := own.Get(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	return record.HolderIdentity
}

// The lease is given back when all that was led has ended, and not before, be it that the
// process ends or that leading has failed.
func TestLeaseIsGivenBackLast(t *testing.T) {
	failure := errors.New("failed")
	for _, fails := range []error{nil, failure} {
		ctx, cancel := context.WithCancel(t.Context())
		lock, followed := lockOf("a"), false
		e := &election{
			lock:   lock,
			follow: func(_ context.Context, elected <-chan struct{}) { <-elected; followed = true },
			lead: func(held context.Context) error {
				if fails == nil {
					cancel()
					<-held.Done()
				}
				if !followed {
					t.Error("it leads while it follows")
				}
				if holder := holderOf(t, lock); holder != "a" {
					t.Errorf("%q has the lease before the work has ended", holder)
				}
				return fails
			},
		}
		if err := e.run(ctx); !errors.Is(err, fails) {
			t.Errorf("%v, want %v", err, fails)
		}
		if holder := holderOf(t, lock); holder != "" {
			t.Errorf("%q has the lease still", holder)
		}
		cancel()
	}
}
