package controller

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientelection "k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// The lease of the replica that writes. Another takes over when it was not renewed for its
// duration, which it has to see itself: two tries later at most, of up to 2.2 times
// leaseRetry, so after ten seconds. The leader gives up before, when it could not renew for
// leaseRenewal: that is how long API servers may be away, as while etcd elects a leader.
// Renewing is one small write for each leaseRetry.
const (
	leaseDuration = 6 * time.Second
	leaseRenewal  = 4 * time.Second
	leaseRetry    = 750 * time.Millisecond
)

const leaseName = "kvap-controller.kvap.dev"

// An election has one replica of several lead. Who loses the lease leads nothing any more,
// follows, and stands again, in the same process: its webhook serves all the time. The
// manager of controller-runtime would end with the lease.
type election struct {
	lock resourcelock.Interface
	// follow returns when elected is closed, or the context ends.
	follow func(ctx context.Context, elected <-chan struct{})
	// lead leads until the context ends, and writes nothing once it has returned.
	lead func(context.Context) error
}

// run stands for the election until the context ends, or leading fails.
func (e *election) run(ctx context.Context) error {
	for ctx.Err() == nil {
		if err := e.term(ctx); err != nil {
			return err
		}
		if ctx.Err() == nil {
			log.FromContext(ctx).Info("the lease is lost; this replica follows, and stands for it again")
		}
	}
	return nil
}

// term follows until the replica is elected, and leads until it has lost the lease.
func (e *election) term(ctx context.Context) error {
	standing, withdraw := context.WithCancel(ctx)
	defer withdraw()
	lock := &cachedLock{Interface: e.lock, lost: withdraw}
	began := make(chan context.Context, 1)
	elector, err := clientelection.NewLeaderElector(clientelection.LeaderElectionConfig{
		Lock: lock, Name: leaseName, LeaseDuration: leaseDuration, RenewDeadline: leaseRenewal, RetryPeriod: leaseRetry,
		Callbacks: clientelection.LeaderCallbacks{
			OnStartedLeading: func(held context.Context) {
				lock.held.Store(true)
				began <- held
			},
			OnStoppedLeading: func() {},
		},
	})
	if err != nil {
		return err
	}
	elected, ended := make(chan struct{}), make(chan struct{})
	var following sync.WaitGroup
	following.Go(func() { e.follow(ctx, elected) })
	go func() {
		defer close(ended)
		elector.Run(standing)
	}()
	var held context.Context
	select {
	case held = <-began:
	case <-ended:
	}
	close(elected)
	following.Wait()
	if held == nil {
		return nil
	}
	err = e.lead(held)
	withdraw()
	<-ended
	if err != nil || ctx.Err() != nil {
		e.release(ctx)
	}
	return err
}

// release gives the lease to whoever wants it, after all that was led has ended. client-go
// would do it before.
func (e *election) release(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), leaseRenewal)
	defer cancel()
	record, _, err := e.lock.Get(ctx)
	if err == nil && record.HolderIdentity == e.lock.Identity() {
		now := metav1.Now()
		err = e.lock.Update(ctx, resourcelock.LeaderElectionRecord{
			LeaseDurationSeconds: 1, RenewTime: now, AcquireTime: now, LeaderTransitions: record.LeaderTransitions,
		})
	}
	if err != nil {
		log.FromContext(ctx).Error(err, "the lease is not given back")
	}
}

// A cachedLock tells at once of a lease that somebody else has, where this replica had it:
// client-go tells after it has tried to renew it for leaseRenewal.
type cachedLock struct {
	resourcelock.Interface
	held atomic.Bool
	lost func()
}

// Get implements resourcelock.Interface. The leader asks where it could not renew.
func (l *cachedLock) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	record, raw, err := l.Interface.Get(ctx)
	if err == nil && l.held.Load() && record.HolderIdentity != "" && record.HolderIdentity != l.Identity() {
		l.lost()
	}
	return record, raw, err
}

// lead does what only one replica does, passes and what goes with them, until the context ends,
// or something fails. All has ended when it returns. A replica may lead several times.
func (r *reconciler) lead(ctx context.Context) error {
	defer r.forget()
	again := true // a process may lead several times
	passes, err := controller.NewUnmanaged("kvap", controller.Options{
		Reconciler: r, MaxConcurrentReconciles: 1, SkipNameValidation: &again, Logger: log.FromContext(ctx),
		RateLimiter: workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](retryAfter/10, 5*retryAfter),
	})
	if err != nil {
		return err
	}
	marks, err := controller.NewUnmanaged("kvap-edited", controller.Options{
		Reconciler: r.statuses.edited, MaxConcurrentReconciles: writers, SkipNameValidation: &again, Logger: log.FromContext(ctx),
	})
	if err != nil {
		return err
	}
	if err := errors.Join(passes.Watch(source.Func(r.debouncer.start)), marks.Watch(source.Func(r.statuses.edited.start))); err != nil {
		return err
	}
	all := append([]func(context.Context) error{passes.Start, marks.Start, r.params.Start}, r.options.Leading...)
	if r.scanner != nil {
		all = append(all, r.scanner.Run)
	}
	group, running := errgroup.WithContext(ctx)
	for _, run := range all {
		group.Go(func() error { return run(running) })
	}
	if err := group.Wait(); ctx.Err() == nil {
		return err
	}
	return nil
}

// follow serves what the API server may ask any replica, and writes nothing, until the replica
// is elected, or the context ends. It serves every rule that a webhook could be asked for, so
// that it lacks none whatever the one who writes is about to do.
func (r *reconciler) follow(ctx context.Context, elected <-chan struct{}) {
	triggered := r.debouncer.triggered()
	for {
		err := r.mirror(ctx)
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
	ctx, cancel := context.WithTimeout(ctx, longestPass)
	defer cancel()
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
