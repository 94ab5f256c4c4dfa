package scan

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	apischema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"
	"k8s.io/client-go/util/workqueue"

	"github.com/kvap/kvap/internal/judge"
)

// A scanRound is the time between two scans of everything.
type scanRound struct {
	*Scanner
	judge     *Judge
	resources []resource
	reports   map[string]*unstructured.Unstructured // that are there, by the UID of their object
	watches   map[resource]context.CancelFunc
	queue     workqueue.TypedRateLimitingInterface[task]
}

// A task is an object to scan, or all objects of a resource where it has no name.
type task struct {
	resource             resource
	namespace, name, uid string
}

// begin reads what a round begins with.
func (s *Scanner) begin(ctx context.Context, p Policies) (*scanRound, error) {
	known, err := s.known(ctx, p)
	if err != nil {
		return nil, err
	}
	judge, err := NewJudge(p, known)
	if err != nil {
		return nil, err
	}
	reports, err := s.reports(ctx)
	if err != nil {
		return nil, err
	}
	served, away, err := s.served()
	if err != nil {
		return nil, err
	}
	r := &scanRound{
		Scanner: s, judge: judge, resources: resourcesOf(p, served), reports: reports, watches: map[resource]context.CancelFunc{},
		queue: workqueue.NewTypedRateLimitingQueue(workqueue.NewTypedItemExponentialFailureRateLimiter[task](minRetryDelay, maxRetryDelay)),
	}
	s.problems.begin(p, served, r.resources)
	r.removeUnasked(ctx, away)
	return r, nil
}

// known are the objects that rules look up: Namespaces, kvap's params, and the
// ConfigMaps that rules name.
func (s *Scanner) known(ctx context.Context, p Policies) ([]map[string]any, error) {
	var out []map[string]any
	keep := func(o *unstructured.Unstructured) error {
		o.SetManagedFields(nil)
		out = append(out, o.Object)
		return nil
	}
	for _, resource := range []apischema.GroupVersionResource{
		{Version: "v1", Resource: "namespaces"}, {Group: "kvap.dev", Version: "v1alpha1", Resource: "params"},
	} {
		if err := s.each(ctx, resource, metav1.ListOptions{}, keep); err != nil && !apierrors.IsNotFound(err) {
			return nil, err
		}
	}
	asked := map[judge.Lookup]bool{}
	for _, r := range p.Compiled.Rules {
		for _, l := range judge.Lookups(r) {
			key := judge.Lookup{APIVersion: l.APIVersion, Kind: l.Kind, Namespace: l.Namespace, Name: l.Name}
			if l.Kind != "ConfigMap" || asked[key] {
				continue
			}
			asked[key] = true
			o, err := s.dynamic.Resource(apischema.GroupVersionResource{Version: "v1", Resource: "configmaps"}).Namespace(l.Namespace).Get(ctx, l.Name, metav1.GetOptions{})
			if apierrors.IsNotFound(err) {
				continue
			}
			if err != nil {
				return nil, err
			}
			if err := keep(o); err != nil {
				return nil, err
			}
		}
	}
	return out, nil
}

// next does the next task of the queue. It reports whether there is one.
func (r *scanRound) next(ctx context.Context) bool {
	t, shutdown := r.queue.Get()
	if shutdown {
		return false
	}
	defer r.queue.Done(t)
	r.try(ctx, t)
	return ctx.Err() == nil
}

// try does a task, later again where it fails. What fails for one object, or for one
// resource, keeps no other.
func (r *scanRound) try(ctx context.Context, t task) {
	err := r.do(ctx, t)
	if ctx.Err() != nil {
		return
	}
	r.problems.set(t, err)
	r.metrics.reports.Set(float64(len(r.reports)))
	switch {
	case err != nil:
		r.retry(t, err)
	case t.name != "":
		r.queue.Forget(t)
	} // a resource is read anew less and less often
}

// retry adds a task that failed to the queue, later and later.
func (r *scanRound) retry(t task, err error) {
	if r.queue.NumRequeues(t) == 0 {
		r.log.Info("scanning fails, and is tried again", "resource", t.resource.GroupResource().String(), "namespace", t.namespace, "name", t.name, "err", err.Error())
	}
	r.metrics.failed(t.what())
	r.queue.AddRateLimited(t)
}

// what is what a task is about, as a metric says it.
func (t task) what() string {
	if t.name == "" {
		return "resource"
	}
	return "object"
}

func (r *scanRound) do(ctx context.Context, t task) error {
	if t.name == "" {
		return r.scanAll(ctx, t.resource)
	}
	return r.rescan(ctx, t)
}

// scanAll scans the objects of a resource, and follows what changes from the version of
// the first page on: however long the list takes, no change is lost. Reports go of
// objects that are not there, or are not judged any more.
func (r *scanRound) scanAll(ctx context.Context, resource resource) error {
	seen, first := map[string]bool{}, true
	for page, err := range r.pages(ctx, resource.GroupVersionResource, metav1.ListOptions{}) {
		if err != nil {
			return err
		}
		if first {
			r.follow(ctx, resource, page.GetResourceVersion())
			first = false
		}
		for i := range page.Items {
			o := &page.Items[i]
			if r.judge.excludes(o.GetNamespace()) {
				continue
			}
			seen[string(o.GetUID())] = true
			err := r.scan(ctx, o)
			if ctx.Err() != nil {
				return ctx.Err()
			}
			t := task{resource, o.GetNamespace(), o.GetName(), string(o.GetUID())}
			r.problems.set(t, err)
			if err != nil {
				r.retry(t, err)
			}
		}
	}
	r.problems.keep(resource, seen)
	return r.removeStale(ctx, resource, seen)
}

// scan judges an object and brings its report into step. An object that cannot be
// judged, or is about to go, keeps the report that it has.
func (r *scanRound) scan(ctx context.Context, o *unstructured.Unstructured) error {
	if r.judge.passesOver(o) {
		return nil
	}
	scanned, err := r.judge.Object(ctx, o)
	if err != nil {
		return fmt.Errorf("it cannot be judged: %w", err)
	}
	err = r.write(ctx, scanned)
	if apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
		return nil // the object goes too
	}
	return err
}

// rescan scans an object that has changed. The report goes with the object; the garbage
// collector may be slow.
func (r *scanRound) rescan(ctx context.Context, t task) error {
	o, err := r.dynamic.Resource(t.resource.GroupVersionResource).Namespace(t.namespace).Get(ctx, t.name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err) || err == nil && string(o.GetUID()) != t.uid:
		return r.remove(ctx, t.uid)
	case err != nil:
		return err
	}
	return r.scan(ctx, o)
}

// follow adds to the queue what changes of a resource, until the round ends. Where a
// watch cannot go on, the resource is read anew, and no other.
func (r *scanRound) follow(ctx context.Context, resource resource, version string) {
	if stop := r.watches[resource]; stop != nil {
		stop()
	}
	ctx, cancel := context.WithCancel(ctx)
	r.watches[resource] = cancel
	go func() {
		err := r.watch(ctx, resource, version)
		if ctx.Err() == nil {
			r.retry(task{resource: resource}, fmt.Errorf("its changes are not heard: %w", err))
		}
	}()
}

// watch adds to the queue what changes, until the API server tells no more.
func (r *scanRound) watch(ctx context.Context, resource resource, version string) error {
	w, err := watchtools.NewRetryWatcherWithContext(ctx, version, &cache.ListWatch{
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			w, err := r.metadata.Resource(resource.GroupVersionResource).Watch(ctx, o)
			if ctx.Err() == nil {
				r.problems.heard(resource, err)
			}
			if apierrors.IsNotFound(err) || apierrors.IsResourceExpired(err) || apierrors.IsGone(err) {
				return gone(err), nil // which a RetryWatcher would ask again and again
			}
			return w, err
		},
	})
	if err != nil {
		return err
	}
	defer w.Stop()
	for e := range w.ResultChan() {
		if e.Type == watch.Error {
			return apierrors.FromObject(e.Object)
		}
		if o, ok := e.Object.(*metav1.PartialObjectMetadata); ok && !r.judge.excludes(o.Namespace) {
			r.queue.Add(task{resource, o.Namespace, o.Name, string(o.UID)})
		}
	}
	return ctx.Err()
}

// gone is a watch that ends for good.
func gone(err error) watch.Interface {
	w := watch.NewFakeWithChanSize(1, false)
	w.Error(&metav1.Status{Status: metav1.StatusFailure, Code: 410, Reason: metav1.StatusReasonGone, Message: err.Error()})
	return w
}
