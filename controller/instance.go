package controller

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coordinationv1client "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// An instance of kvap is all replicas that share a lease: it is called by the namespace of the
// lease. One instance controls a cluster. Another one, with other flags, would write each object
// otherwise, and the first would write it back, for ever. So an instance claims the cluster
// before it leads, by a Lease in a namespace that every cluster has.
const (
	claimNamespace = "kube-public"
	claimDuration  = time.Minute
	claimRenewal   = claimDuration / 4
	claimRetry     = 5 * time.Second
)

// ReasonStandingBy is the reason of the events by which an instance tells that it stands by, when
// it begins to and each StandingByEvery.
const (
	ReasonStandingBy = "StandingBy"
	StandingByEvery  = 10 * time.Minute
)

// instanceKey is the annotation of what the controller writes that names its instance.
const instanceKey = "kvap.dev/instance"

// errOtherInstance is a cluster that another instance controls.
var errOtherInstance = errors.New("another instance of kvap controls this cluster")

// A claim is an instance's on the cluster.
type claim struct {
	leases   coordinationv1client.LeaseInterface
	instance string
	now      func() time.Time
	tell     func(why error) // that the instance stands by
	// standing is why the instance does not lead; nil where it does, or need not.
	standing atomic.Pointer[error]
}

// standingBy makes an event, about its own lease, of an instance that stands by.
func standingBy(recorder events.EventRecorder, instance string) func(why error) {
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: instance, Name: leaseName}}
	return func(why error) {
		recorder.Eventf(lease, nil, corev1.EventTypeWarning, ReasonStandingBy, "Lead", "this instance stands by and writes nothing: %v", why)
	}
}

// metric is one while the instance stands by.
func (c *claim) metric() prometheus.Collector {
	return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "kvap_standing_by", Help: "One while another instance controls the cluster, so that this one writes nothing."}, func() float64 {
		if c.standing.Load() == nil {
			return 0
		}
		return 1
	})
}

// take takes the cluster, or keeps it. It returns errOtherInstance while another instance has
// renewed its claim lately.
func (c *claim) take(ctx context.Context) error {
	have, err := c.leases.Get(ctx, leaseName, metav1.GetOptions{})
	now := metav1.NewMicroTime(c.now())
	want := coordinationv1.LeaseSpec{HolderIdentity: &c.instance, LeaseDurationSeconds: new(int32(claimDuration / time.Second)), RenewTime: &now}
	switch {
	case apierrors.IsNotFound(err):
		_, err = c.leases.Create(ctx, &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: leaseName, Labels: ownLabels(nil)}, Spec: want}, metav1.CreateOptions{})
		return err
	case err != nil:
		return err
	}
	if by := have.Spec.HolderIdentity; by != nil && *by != "" && *by != c.instance && have.Spec.RenewTime != nil && now.Sub(have.Spec.RenewTime.Time) < claimDuration {
		return fmt.Errorf("%w: the one of the namespace %s; uninstall it, or this one, of the namespace %s", errOtherInstance, *by, c.instance)
	}
	have.Spec = want
	_, err = c.leases.Update(ctx, have, metav1.UpdateOptions{})
	return err
}

// leads leads once the cluster is claimed, and as long as it is.
func (c *claim) leads(lead func(context.Context) error) func(context.Context) error {
	return func(ctx context.Context) error {
		claimed := c.await(ctx)
		if ctx.Err() != nil {
			c.standing.Store(nil) // another replica stands by
			return nil
		}
		if !claimed {
			return lead(ctx)
		}
		group, running := errgroup.WithContext(ctx)
		ended, end := context.WithCancel(running)
		group.Go(func() error {
			defer end()
			return lead(running)
		})
		group.Go(func() error { return c.keep(ended) })
		return group.Wait()
	}
}

// await returns when the cluster is claimed, or tells that nobody may claim it, as where the
// controller's roles are of an earlier version: it leads then without a claim.
func (c *claim) await(ctx context.Context) (claimed bool) {
	said, told := "", time.Time{}
	for {
		err, wait := c.take(ctx), leaseRetry
		switch {
		case err == nil:
			c.standing.Store(nil)
			return true
		case apierrors.IsForbidden(err), apierrors.IsNotFound(err):
			log.FromContext(ctx).Error(err, "whether another instance of kvap controls the cluster is not known")
			return false
		case errors.Is(err, errOtherInstance):
			c.standing.Store(&err)
			wait = claimRetry
			if c.now().Sub(told) >= StandingByEvery {
				c.tell(err)
				told = c.now()
			}
		}
		if text := err.Error(); text != said && ctx.Err() == nil {
			log.FromContext(ctx).Error(err, "this instance stands by and writes nothing")
			said = text
		}
		select {
		case <-ctx.Done():
			return false
		case <-time.After(wait):
		}
	}
}

// keep renews the claim until the context ends, or another instance has the cluster.
func (c *claim) keep(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(claimRenewal):
		}
		switch err := c.take(ctx); {
		case errors.Is(err, errOtherInstance):
			return err
		case err != nil && ctx.Err() == nil:
			log.FromContext(ctx).Error(err, "the claim on the cluster is not renewed")
		}
	}
}
