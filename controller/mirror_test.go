package controller

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// silent is a cache that never has what it is asked for, as where a permission to list is
// gone.
type silent struct{ client.Reader }

func (silent) List(ctx context.Context, _ client.ObjectList, _ ...client.ListOption) error {
	<-ctx.Done()
	return ctx.Err()
}

// A follower that waits for what never comes has failed after a while, as a pass has: one
// that is elected meanwhile leads.
func TestFollowerHasADeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &reconciler{watcher: &watcher{client: silent{}}, options: Options{Step: func(Step) {}}}
		ended := make(chan error, 1)
		go func() { ended <- r.mirror(t.Context()) }()
		if err := <-ended; !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
	})
}
