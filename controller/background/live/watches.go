package live

import (
	"context"
	"fmt"
	"sync"
	"time"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	apiwatch "k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/tools/cache"

	"github.com/kvap/kvap/api/v1alpha1"
	"github.com/kvap/kvap/controller/background"
)

// The labels of what is watched: of objects that were generated, and of those that
// were copied, but for copies of copies, which are generated.
const (
	generatedLabels = "app.kubernetes.io/managed-by=kyverno,generate.kyverno.io/policy-name"
	copiedLabels    = "generate.kyverno.io/clone-source,app.kubernetes.io/managed-by!=kyverno"
)

// kindWait is how long to wait for a kind that the cluster does not serve yet.
const kindWait = 15 * time.Second

// A ChangeHandler hears of what is watched. It is a Worker.
type ChangeHandler interface {
	ObjectChanged(background.ObjectChange)
	WatchFailed(background.Watched, error)
	Request(name string)
	RequestWatch(err error) // nil when it is over
}

// Watches tell of objects, from Run until its context ends.
type Watches struct {
	metadata  metadata.Interface
	mapper    apimeta.RESTMapper
	namespace string

	mu      sync.Mutex
	ctx     context.Context // of Run; nil before
	handler ChangeHandler
	wanted  []background.Watched
	running map[background.Watched]context.CancelFunc
}

var _ background.Watcher = (*Watches)(nil)

// NewWatches watches a cluster. The namespace is that of the GenerateRequests.
func NewWatches(c *Client, namespace string) *Watches {
	return &Watches{metadata: c.metadata, mapper: c.client.RESTMapper(), namespace: namespace, running: map[background.Watched]context.CancelFunc{}}
}

// Run watches until the context ends.
func (w *Watches) Run(ctx context.Context, heard ChangeHandler) {
	w.mu.Lock()
	w.ctx, w.handler = ctx, heard
	w.update()
	w.mu.Unlock()
	requests := v1alpha1.GroupVersion().WithResource("generaterequests")
	w.informer(requests, w.namespace, "", func(o *metav1.PartialObjectMetadata, gone bool) {
		if !gone {
			heard.Request(o.Name)
		}
	}, heard.RequestWatch).RunWithContext(ctx)
}

// Watch implements background.Watcher.
func (w *Watches) Watch(list []background.Watched) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.wanted = list
	w.update()
}

// update starts and stops watches.
func (w *Watches) update() {
	if w.ctx == nil {
		return
	}
	wanted := map[background.Watched]bool{}
	for _, one := range w.wanted {
		wanted[one] = true
		if w.running[one] != nil {
			continue
		}
		ctx, cancel := context.WithCancel(w.ctx)
		w.running[one] = cancel
		go w.watch(ctx, one)
	}
	for one, cancel := range w.running {
		if !wanted[one] {
			cancel()
			delete(w.running, one)
		}
	}
}

// watch watches a kind, once the cluster serves it.
func (w *Watches) watch(ctx context.Context, of background.Watched) {
	for ctx.Err() == nil {
		kind := schema.FromAPIVersionAndKind(of.APIVersion, of.Kind)
		mapping, err := w.mapper.RESTMapping(kind.GroupKind(), kind.Version)
		if err != nil {
			w.handler.WatchFailed(of, fmt.Errorf("the kind is not served: %w", err))
			select {
			case <-ctx.Done():
			case <-time.After(kindWait):
			}
			continue
		}
		selector := generatedLabels
		if of.Sources {
			selector = copiedLabels
		}
		w.informer(mapping.Resource, of.Namespace, selector, func(o *metav1.PartialObjectMetadata, gone bool) {
			w.handler.ObjectChanged(background.ObjectChange{
				Of: of, Version: o.ResourceVersion, Labels: o.Labels, Gone: gone,
				Object: v1alpha1.ObjectReference{APIVersion: of.APIVersion, Kind: of.Kind, Namespace: o.Namespace, Name: o.Name, UID: o.UID},
			})
		}, func(err error) {
			if err != nil {
				w.handler.WatchFailed(of, err)
			}
		}).RunWithContext(ctx)
	}
}

// informer tells of the metadata of objects, and of what goes wrong; nil is that it goes
// well again. It tries again by itself.
func (w *Watches) informer(
	resource schema.GroupVersionResource, namespace, selector string, tell func(o *metav1.PartialObjectMetadata, gone bool), problem func(error),
) cache.SharedIndexInformer {
	var from metadata.ResourceInterface = w.metadata.Resource(resource)
	if namespace != "" {
		from = w.metadata.Resource(resource).Namespace(namespace)
	}
	informer := cache.NewSharedIndexInformerWithOptions(cache.ToListWatcherWithWatchListSemantics(&cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			o.LabelSelector = selector
			list, err := from.List(ctx, o)
			if err == nil {
				problem(nil)
			}
			return list, err
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (apiwatch.Interface, error) {
			o.LabelSelector = selector
			watch, err := from.Watch(ctx, o)
			if err == nil {
				problem(nil)
			}
			return watch, err
		},
	}, w.metadata), &metav1.PartialObjectMetadata{}, cache.SharedIndexInformerOptions{})
	_ = informer.SetTransform(bare) // it has not started
	_ = informer.SetWatchErrorHandlerWithContext(func(_ context.Context, _ *cache.Reflector, err error) { problem(err) })
	_, _ = informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(o any) { told(o, false, tell) },
		UpdateFunc: func(_, o any) { told(o, false, tell) },
		DeleteFunc: func(o any) { told(o, true, tell) },
	})
	return informer
}

func told(o any, gone bool, tell func(*metav1.PartialObjectMetadata, bool)) {
	if last, ok := o.(cache.DeletedFinalStateUnknown); ok {
		o = last.Obj
	}
	if object, ok := o.(*metav1.PartialObjectMetadata); ok {
		tell(object, gone)
	}
}

// bare drops what nobody asks for.
func bare(o any) (any, error) {
	if object, ok := o.(*metav1.PartialObjectMetadata); ok {
		object.ManagedFields, object.Annotations, object.OwnerReferences, object.Finalizers = nil, nil, nil, nil
	}
	return o, nil
}
