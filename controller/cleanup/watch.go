package cleanup

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/go-logr/logr"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/tools/cache"

	"github.com/kvap/kvap/interp"
)

// How often labelled objects are looked at, how often it is looked whether other objects
// may be deleted, and how often that is asked of each resource where the API server does not
// know all rules.
const (
	sweepEvery  = time.Second
	renewEvery  = time.Minute
	reviewEvery = 10 * time.Minute
)

// A watcher knows the labelled objects of all resources that may be deleted.
type watcher struct {
	live    *liveCluster
	kube    kubernetes.Interface
	log     logr.Logger
	watched map[schema.GroupVersionResource]*watched

	// What was asked about last, and when.
	reviewed   rights
	reviewedAt time.Time
}

// rights are what decides which objects may be deleted.
type rights struct {
	served string
	rules  string
	// incomplete tells that the rules are not all that decides.
	incomplete bool
}

type watched struct {
	resource Resource
	informer cache.SharedIndexInformer
	cancel   context.CancelFunc
}

// run has a reaper look at all labelled objects again and again until the context
// ends.
func (w *watcher) run(ctx context.Context, r *reaper) {
	renew, sweep := time.NewTicker(renewEvery), time.NewTicker(sweepEvery)
	defer renew.Stop()
	defer sweep.Stop()
	w.renew(ctx)
	for {
		select {
		case <-ctx.Done():
			return
		case <-renew.C:
			w.renew(ctx)
		case <-sweep.C:
			r.sweep(ctx, w.all())
		}
	}
}

// renew watches what is served and may be listed, watched and deleted, and that alone.
func (w *watcher) renew(ctx context.Context) {
	all, err := w.live.preferred()
	if err != nil {
		w.log.Error(err, "what the cluster serves is not known")
		return
	}
	now, err := w.rights(ctx, all)
	if err != nil {
		if ctx.Err() == nil {
			w.log.Error(err, "asking what may be deleted")
		}
		return
	}
	if now == w.reviewed && (!now.incomplete || time.Since(w.reviewedAt) < reviewEvery) {
		return
	}
	wanted := map[schema.GroupVersionResource]bool{}
	for _, r := range all {
		allowed, err := w.allowed(ctx, r)
		if err != nil {
			if ctx.Err() == nil {
				w.log.Error(err, "asking what may be deleted")
			}
			return // what is watched goes on
		}
		if wanted[r.GroupVersionResource] = allowed; allowed && w.watched[r.GroupVersionResource] == nil {
			w.start(ctx, r)
		}
	}
	for at, one := range w.watched {
		if !wanted[at] {
			one.cancel()
			delete(w.watched, at)
		}
	}
	w.reviewed, w.reviewedAt = now, time.Now()
}

// rights asks what may be done at all. While the answer is the same, nothing is asked of each
// resource.
func (w *watcher) rights(ctx context.Context, all []Resource) (rights, error) {
	answer, err := w.kube.AuthorizationV1().SelfSubjectRulesReviews().Create(ctx, &authorizationv1.SelfSubjectRulesReview{
		Spec: authorizationv1.SelfSubjectRulesReviewSpec{Namespace: metav1.NamespaceDefault}, // those of the cluster are among them
	}, metav1.CreateOptions{})
	if err != nil {
		return rights{}, err
	}
	var rules []string // in an order of their own, for the API server's may be any
	for _, r := range answer.Status.ResourceRules {
		rules = append(rules, r.String())
	}
	slices.Sort(rules)
	return rights{fmt.Sprint(all), strings.Join(rules, "\n"), answer.Status.Incomplete}, nil
}

// allowed tells whether objects of a resource may be deleted when they end. The first
// answer that is no is enough.
func (w *watcher) allowed(ctx context.Context, r Resource) (bool, error) {
	for _, verb := range []string{"delete", "list", "watch"} {
		if !slices.Contains(r.Verbs, verb) {
			return false, nil
		}
	}
	for _, verb := range []string{"delete", "list", "watch"} {
		answer, err := w.kube.AuthorizationV1().SelfSubjectAccessReviews().Create(ctx, &authorizationv1.SelfSubjectAccessReview{
			Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &authorizationv1.ResourceAttributes{
				Verb: verb, Group: r.Group, Version: r.Version, Resource: r.Resource,
			}},
		}, metav1.CreateOptions{})
		if err != nil || !answer.Status.Allowed {
			return false, err
		}
	}
	return true, nil
}

func (w *watcher) start(ctx context.Context, r Resource) {
	ctx, cancel := context.WithCancel(ctx)
	informer := metadatainformer.NewFilteredMetadataInformer(w.live.metadata, r.GroupVersionResource, metav1.NamespaceAll, 0, cache.Indexers{},
		func(o *metav1.ListOptions) { o.LabelSelector = interp.TTLLabel }).Informer()
	if err := informer.SetTransform(withoutManagedFields); err != nil {
		cancel()
		w.log.Error(err, "labelled objects are not watched", "resource", r.Resource)
		return
	}
	go informer.Run(ctx.Done())
	w.watched[r.GroupVersionResource] = &watched{r, informer, cancel}
}

// withoutManagedFields keeps them out of the cache.
func withoutManagedFields(o any) (any, error) {
	if m, ok := o.(metav1.Object); ok {
		m.SetManagedFields(nil)
	}
	return o, nil
}

// all are the labelled objects.
func (w *watcher) all() []labelled {
	var out []labelled
	for _, one := range w.watched {
		for _, o := range one.informer.GetStore().List() {
			if m, ok := o.(metav1.Object); ok {
				out = append(out, labelled{one.resource, m})
			}
		}
	}
	return out
}
