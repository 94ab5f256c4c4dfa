package scan

import (
	"context"
	"maps"
	"reflect"
	"regexp"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	apischema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	ctrlcache "sigs.k8s.io/controller-runtime/pkg/cache"

	"github.com/kvap/kvap/compile"
)

// A followed kind is one whose objects are judged. What is not said to be otherwise is guarded by
// the leader's lock.
type followed struct {
	resource                           // does not change
	informer cache.SharedIndexInformer // of traces
	stop     context.CancelFunc

	judge       *Judge
	fingerprint uint64 // of the rules
	whole       bool   // some rule reads what a controller writes into an object
	lacking     error  // why nothing is judged
	pass        *pass
}

// A pass is one look at all objects of a kind, by the same rules. What changes after an object was
// looked at belongs to it.
type pass struct {
	judged map[types.UID]judgement
	token  string                              // of the next page
	page   map[task]*unstructured.Unstructured // what is not judged yet of the last one
	ended  bool                                // that was the last one
	done   bool
}

// A judgement is of what an object was, and what its report should be: digests.
type judgement struct{ object, report uint64 }

func newPass() *pass {
	return &pass{judged: map[types.UID]judgement{}, page: map[task]*unstructured.Unstructured{}}
}

// newFollowed follows a kind from now on.
func (l *leader) newFollowed(ctx context.Context, r resource) *followed {
	ctx, stop := context.WithCancel(ctx)
	f := &followed{resource: r, stop: stop}
	objects := l.metadata.Resource(r.GroupVersionResource)
	var refused time.Duration // how long the next list waits; an informer lists one at a time
	f.informer = newInformer(&cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			list, err := objects.List(ctx, paged(o))
			l.problems.unread(r, problemOf(ctx, o, err))
			switch {
			case apierrors.IsForbidden(err): // client-go would ask twice a minute
				l.passOver(f)
				refused = min(max(2*refused, minRetryDelay), maxRetryDelay)
				pause(ctx, refused)
				return nil, err
			case err != nil:
				l.passOver(f)
				if apierrors.IsNotFound(err) {
					l.wake() // the kind may not be served any more
				}
				return nil, err
			}
			refused = 0
			return traces(list)
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			w, err := objects.Watch(ctx, o)
			if o.SendInitialEvents != nil && apierrors.IsForbidden(err) {
				return w, err // the informer lists then, and that tells
			}
			if o.SendInitialEvents == nil {
				l.problems.unheard(r, problemOf(ctx, o, err))
				return w, err
			}
			l.problems.unread(r, problemOf(ctx, o, err)) // such a watch lists, too
			if err != nil {
				l.passOver(f)
			}
			return w, err
		},
	}, l.metadata, &metav1.PartialObjectMetadata{}, traceOf)
	_, _ = f.informer.AddEventHandler(cache.ResourceEventHandlerDetailedFuncs{ // it is not stopped yet
		AddFunc: func(o any, first bool) {
			if !first {
				l.add(r, o)
			}
		},
		UpdateFunc: func(before, after any) {
			if l.differ(f, before, after) {
				l.add(r, after)
			}
		},
		DeleteFunc: func(o any) { l.add(r, o) },
	})
	l.informers.Go(func() { f.informer.RunWithContext(ctx) })
	l.informers.Go(func() {
		if cache.WaitForCacheSync(ctx.Done(), f.informer.HasSynced, l.reportsOf(r.namespaced).HasSynced) {
			l.queue.Add(task{kind: r.groupKind()})
			l.sweep(f)
		}
	})
	return f
}

// newInformer makes an informer that keeps what is made of objects.
func newInformer(lw *cache.ListWatch, client any, of runtime.Object, keep cache.TransformFunc) cache.SharedIndexInformer {
	informer := cache.NewSharedIndexInformer(cache.ToListWatcherWithWatchListSemantics(lw, client), of, 0, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
	_ = informer.SetTransform(keep)                                                                             // it has not started
	_ = informer.SetWatchErrorHandlerWithContext(func(context.Context, *cache.Reflector, error) { /* told */ }) // as well
	return informer
}

// paged has a list come by pages, which an API server answers in one piece from its cache.
func paged(o metav1.ListOptions) metav1.ListOptions {
	if o.ResourceVersion == "0" {
		o.ResourceVersion = ""
	}
	return o
}

// traces are what is kept of a list.
func traces(list runtime.Object) (runtime.Object, error) {
	from, err := meta.ListAccessor(list)
	if err != nil {
		return nil, err
	}
	out := &internalversion.List{ListMeta: metav1.ListMeta{ResourceVersion: from.GetResourceVersion(), Continue: from.GetContinue(), RemainingItemCount: from.GetRemainingItemCount()}}
	err = meta.EachListItem(list, func(o runtime.Object) error {
		kept, err := traceOf(o)
		if t, ok := kept.(*trace); ok {
			out.Items = append(out.Items, t)
		}
		return err
	})
	return out, err
}

// problemOf is an error that is worth telling: not that a version is forgotten, or that an API server
// does not know how to list by a watch; then informers list.
func problemOf(ctx context.Context, o metav1.ListOptions, err error) error {
	if ctx.Err() != nil || apierrors.IsResourceExpired(err) || apierrors.IsGone(err) || o.SendInitialEvents != nil && apierrors.IsInvalid(err) {
		return nil
	}
	return err
}

// add adds an object to the queue that an informer tells of.
func (l *leader) add(r resource, o any) {
	if t := told(o); t != nil {
		l.queue.Add(task{r.groupKind(), t.Namespace, t.Name, t.UID})
	}
}

// told is the trace that an informer tells of; nil where it does not know what is gone.
func told(o any) *trace {
	if gone, ok := o.(cache.DeletedFinalStateUnknown); ok {
		o = gone.Obj
	}
	t, _ := o.(*trace)
	return t
}

// differ tells whether rules can say other things of an object than before.
func (l *leader) differ(f *followed, before, after any) bool {
	was, ok := before.(*trace)
	is, also := after.(*trace)
	if !ok || !also || was.ResourceVersion == is.ResourceVersion {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return f.whole || is.Generation == 0 || was.Generation != is.Generation || was.digest != is.digest || was.UID != is.UID
}

// readsNamespace tells whether rules read more of a Namespace than its labels.
func readsNamespace(rules []*compile.Rule) bool {
	return mention(rules, regexp.MustCompile(`\bnamespaceObject\b`))
}

// namespacesResource are the Namespaces, of which all is kept.
var namespacesResource = apischema.GroupVersionResource{Version: "v1", Resource: "namespaces"}

// newNamespaces has the objects judged again of a Namespace that changes.
func (l *leader) newNamespaces() cache.SharedIndexInformer {
	objects := l.dynamic.Resource(namespacesResource)
	informer := newInformer(&cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			return objects.List(ctx, paged(o))
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) { return objects.Watch(ctx, o) },
	}, l.dynamic, &unstructured.Unstructured{}, ctrlcache.TransformStripManagedFields())
	_, _ = informer.AddEventHandler(cache.ResourceEventHandlerFuncs{UpdateFunc: func(before, after any) { // it is not stopped yet
		was, ok := before.(*unstructured.Unstructured)
		is, also := after.(*unstructured.Unstructured)
		if !ok || !also {
			return
		}
		l.mu.Lock()
		defer l.mu.Unlock()
		if maps.Equal(was.GetLabels(), is.GetLabels()) && (!l.readsNamespace || reflect.DeepEqual(was.GetAnnotations(), is.GetAnnotations())) {
			return
		}
		for _, f := range l.kinds {
			objects, _ := f.informer.GetIndexer().ByIndex(cache.NamespaceIndex, is.GetName()) // which there is
			for _, o := range objects {
				l.add(f.resource, o)
			}
		}
	}})
	return informer
}

// namespace is a Namespace; nil for objects without one, or where it is gone.
func (l *leader) namespace(ctx context.Context, name string) (map[string]any, error) {
	if name == "" {
		return nil, nil
	}
	if kept, ok, _ := l.namespaces.GetStore().GetByKey(name); ok {
		if o, ok := kept.(*unstructured.Unstructured); ok {
			return o.Object, nil
		}
	}
	o, err := l.dynamic.Resource(namespacesResource).Get(ctx, name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, err
	}
	return o.Object, nil
}

// sweep has those reports looked at that are about objects of a kind which are not there, or, where
// it is nil, about kinds that no rule is about.
func (l *leader) sweep(only *followed) {
	for _, r := range l.reports {
		if !r.HasSynced() {
			continue // it is swept then
		}
		for _, o := range r.GetStore().List() {
			about := *told(o).about
			l.mu.Lock()
			f, unasked := l.kinds[about.kind], l.away != nil && !l.away[about.kind.Group]
			l.mu.Unlock()
			if f == only && (f == nil && unasked || f != nil && !f.has(about)) {
				l.queue.Add(about)
			}
		}
	}
}

// has tells whether an object is known to be there.
func (f *followed) has(t task) bool {
	kept := f.kept(t)
	return kept != nil && kept.UID == t.uid
}

// kept is what is kept of an object; nil if nothing is.
func (f *followed) kept(t task) *trace {
	kept, _, _ := f.informer.GetStore().GetByKey(cache.NewObjectName(t.namespace, t.name).String())
	out, _ := kept.(*trace)
	return out
}
