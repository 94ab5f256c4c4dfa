package scan

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	apischema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/kvap/kvap/internal/judge"
)

// A scanRound is the time between two scans of everything.
type scanRound struct {
	*Scanner
	policies Policies
	judge    *Judge
	reports  map[string]*unstructured.Unstructured // that are there, by the UID of their object
	seen     map[string]bool                       // UIDs of objects that are there
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
		if _, err := s.each(ctx, resource, metav1.ListOptions{}, keep); err != nil && !apierrors.IsNotFound(err) {
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

// scanAll scans the objects of a resource.
func (r *scanRound) scanAll(ctx context.Context, resource apischema.GroupVersionResource) (version string, err error) {
	return r.each(ctx, resource, metav1.ListOptions{}, func(o *unstructured.Unstructured) error { return r.scan(ctx, o) })
}

// scan judges an object and brings its report into step. An object that cannot be
// judged keeps the report that it has.
func (r *scanRound) scan(ctx context.Context, o *unstructured.Unstructured) error {
	if r.judge.passesOver(o) {
		return nil
	}
	r.seen[string(o.GetUID())] = true
	scanned, err := r.judge.Object(ctx, o)
	if err != nil {
		r.log.Info("an object cannot be judged", "kind", o.GetKind(), "namespace", o.GetNamespace(), "name", o.GetName(), "err", err.Error())
		return nil
	}
	return r.write(ctx, scanned)
}

// An objectEvent is an object that is not as it was.
type objectEvent struct {
	resource        apischema.GroupVersionResource
	namespace, name string
	uid             string
	gone            bool
}

// follow scans what changes, until policies change, it is time for a scan of
// everything, or a watch ends.
func (r *scanRound) follow(ctx context.Context, from map[apischema.GroupVersionResource]string) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	changes, ended := make(chan objectEvent, pageSize), make(chan struct{}, len(from))
	for resource, version := range from {
		w, err := r.metadata.Resource(resource).Watch(ctx, metav1.ListOptions{ResourceVersion: version})
		if apierrors.IsForbidden(err) {
			r.log.Info("changes are not scanned, for they may not be watched", "resource", resource.String())
			continue
		}
		if err != nil {
			return err
		}
		go func() {
			defer w.Stop()
			tell(ctx, resource, w, changes)
			ended <- struct{}{}
		}()
	}
	for {
		select {
		case <-ctx.Done(): // or it is time
			return nil
		case <-r.changed:
			r.ring()
			return nil
		case <-ended:
			r.ring()
			return nil
		case c := <-changes:
			if err := r.rescan(ctx, c); err != nil {
				return err
			}
		}
	}
}

// ring has the next round begin at once.
func (s *Scanner) ring() {
	select {
	case s.changed <- struct{}{}:
	default:
	}
}

// tell tells of each change until the watch ends.
func tell(ctx context.Context, resource apischema.GroupVersionResource, w watch.Interface, changes chan<- objectEvent) {
	for e := range w.ResultChan() {
		o, ok := e.Object.(*metav1.PartialObjectMetadata)
		if !ok || e.Type == watch.Error || e.Type == watch.Bookmark {
			if e.Type == watch.Error {
				return
			}
			continue
		}
		c := objectEvent{resource, o.Namespace, o.Name, string(o.UID), e.Type == watch.Deleted || o.DeletionTimestamp != nil}
		select {
		case changes <- c:
		case <-ctx.Done():
			return
		}
	}
}

// rescan scans an object that has changed. The report of one that has gone is the
// garbage collector's, which may be slow.
func (r *scanRound) rescan(ctx context.Context, c objectEvent) error {
	if c.gone {
		delete(r.seen, c.uid)
		return r.remove(ctx, c.uid)
	}
	o, err := r.dynamic.Resource(c.resource).Namespace(c.namespace).Get(ctx, c.name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	return r.scan(ctx, o)
}
