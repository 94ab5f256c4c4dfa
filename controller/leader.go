package controller

import (
	"context"

	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// A leader is what only one replica does: passes, and what goes with them. It may lead
// several times, and others between.
type leader struct {
	reconciler *reconciler
	debouncer  *debouncer
	beside     []func(context.Context) error // options.Leading
}

// lead leads until the context ends, or something fails. All has ended when it returns.
func (l *leader) lead(ctx context.Context) error {
	defer l.reconciler.forget()
	again := true // a process may lead several times
	passes, err := controller.NewUnmanaged("kvap", controller.Options{
		Reconciler: l.reconciler, MaxConcurrentReconciles: 1, SkipNameValidation: &again, Logger: log.FromContext(ctx),
		RateLimiter: workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](retryAfter/10, 5*retryAfter),
	})
	if err != nil {
		return err
	}
	if err := passes.Watch(source.Func(l.debouncer.start)); err != nil {
		return err
	}
	all := append([]func(context.Context) error{passes.Start, l.reconciler.params.Start, l.reconciler.reports.run}, l.beside...)
	group, running := errgroup.WithContext(ctx)
	for _, run := range all {
		group.Go(func() error { return run(running) })
	}
	if err := group.Wait(); ctx.Err() == nil {
		return err
	}
	return nil
}
