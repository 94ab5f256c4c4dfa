package controller

import (
	"context"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/log"
)

// A follower is a replica that does not write: it serves what the API server may ask
// any replica, while it is not elected. It serves every rule that a webhook could be asked
// for, so that it lacks none whatever the one who writes is about to do.
type follower struct {
	reconciler *reconciler
	debouncer  *debouncer
}

// follow follows until the replica is elected, or the context ends.
func (f *follower) follow(ctx context.Context, elected <-chan struct{}) {
	triggered := f.debouncer.triggered()
	for {
		err := f.reconciler.mirror(ctx)
		retry := make(<-chan time.Time)
		if err != nil {
			if ctx.Err() == nil {
				log.FromContext(ctx).Error(err, "following")
			}
			retry = time.After(retryAfter)
		}
		select {
		case <-ctx.Done():
			return
		case <-elected:
			return
		case <-triggered:
			time.Sleep(settleDelay)
		case <-retry:
		}
	}
}

// mirror reads and compiles as a pass does, serves, and writes nothing.
func (r *reconciler) mirror(ctx context.Context) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	in, schemas, _, err := r.read(ctx)
	if err != nil {
		return err
	}
	result, err := r.compiler.compile(ctx, in, schemas)
	if err != nil {
		return err
	}
	wide := r.webhooks.wideOf(Remaining{Exceptions: in.exceptions, ExcludeNamespaces: r.options.ExcludeNamespaces}, in.sources, rulesByPolicy(result))
	_, err = r.webhooks.fallback.Serve(ctx, wide)
	r.answering(err)
	return err
}
