package world

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/tools/cache"
)

// What is watched for API calls at most. A list is watched only if it is small: each
// is held in memory, and its answer is written anew after each change.
const (
	maxWatches = 64
	maxWatched = 1 << 20 // bytes of an answer
	// keepWatch is for how long a watch stays that nobody asks for, where there is no room
	// for others. Until then the API server answers these: to begin and end a watch at each
	// request would cost it more.
	keepWatch = 5 * time.Minute
)

// watches are the objects that rules asked for before, kept up to date.
type watches struct {
	client dynamic.Interface

	mu  sync.Mutex
	ctx context.Context // of all watches; nil before begin
	all map[apiPath]*watch
}

// A watch keeps an object, or a list of objects, up to date.
type watch struct {
	informer cache.SharedIndexInformer
	stop     context.CancelFunc
	used     time.Time   // when it was asked for last
	lost     atomic.Bool // what changes is not heard any more

	// frame is the list around the items; typed tells whether these say their kind.
	frame map[string]any
	typed bool

	mu      sync.Mutex
	version int64  // counts changes
	answer  []byte // to a list, as of a version
	asOf    int64
	outgrew bool // the answer has become too large to be kept
	failed  error
}

func newWatches(client dynamic.Interface) *watches {
	return &watches{client: client, all: map[apiPath]*watch{}}
}

// begin lets API calls start watches, which last as long as the context.
func (w *watches) begin(ctx context.Context) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ctx = ctx
}

// start watches a place for as long as the context lasts.
func (w *watches) start(ctx context.Context, at apiPath) *watch {
	out := &watch{version: 1}
	ctx, out.stop = context.WithCancel(ctx)
	changed := func(any) {
		out.mu.Lock()
		defer out.mu.Unlock()
		out.version++
	}
	out.informer = dynamicinformer.NewFilteredDynamicInformer(w.client, at.resource, at.namespace, 0, cache.Indexers{}, func(o *metav1.ListOptions) {
		if at.name != "" {
			o.FieldSelector = fields.OneTermEqualSelector("metadata.name", at.name).String()
		}
	}).Informer()
	_, _ = out.informer.AddEventHandler(cache.ResourceEventHandlerFuncs{ // it has not stopped
		AddFunc: changed, DeleteFunc: changed, UpdateFunc: func(_, n any) { changed(n) },
	})
	_ = out.informer.SetWatchErrorHandlerWithContext(func(_ context.Context, _ *cache.Reflector, err error) { // it has not started
		out.lost.Store(true)
		out.mu.Lock()
		defer out.mu.Unlock()
		out.failed = err
	})
	go out.informer.RunWithContext(ctx)
	return out
}

func (o *watch) synced() bool { return o.informer.HasSynced() }

// unread is why there are no objects yet; nil where there are.
func (o *watch) unread() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	switch {
	case o.synced():
		return nil
	case o.failed != nil:
		return fmt.Errorf("it cannot be read: %w", o.failed)
	}
	return errNotYet
}

// get is an object that is watched. It must not be changed.
func (o *watch) get(namespace, name string) (map[string]any, bool) {
	found, ok, err := o.informer.GetStore().GetByKey(cache.NewObjectName(namespace, name).String())
	if err != nil || !ok || !o.synced() {
		return nil, false
	}
	return found.(*unstructured.Unstructured).Object, true
}

// answer is what the API server would say to a plain get or list, if it is watched
// and there. What is missing is not answered: it may only be late.
func (w *watches) answer(at apiPath) ([]byte, bool) {
	found := w.kept(at)
	if found == nil || !found.synced() {
		return nil, false
	}
	if at.name == "" {
		answer, ok := found.list()
		if !ok {
			w.drop(at)
		}
		return answer, ok
	}
	object, ok := found.get(at.namespace, at.name)
	if !ok {
		return nil, false
	}
	data, err := json.Marshal(object)
	return data, err == nil
}

// kept is the watch of a place; nil where there is none, or one that knows only what was.
func (w *watches) kept(at apiPath) *watch {
	w.mu.Lock()
	defer w.mu.Unlock()
	found := w.all[at]
	if found == nil {
		return nil
	}
	if found.lost.Load() {
		w.remove(at)
		return nil
	}
	found.used = time.Now()
	return found
}

// drop ends a watch: the API server is asked again, and its answer says whether the place
// is watched again.
func (w *watches) drop(at apiPath) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.remove(at)
}

func (w *watches) remove(at apiPath) {
	if gone := w.all[at]; gone != nil {
		gone.stop()
		delete(w.all, at)
	}
}

// makeRoom ends the watch that was asked for longest ago, if there is no room for another.
// It reports whether there is.
func (w *watches) makeRoom() bool {
	if len(w.all) < maxWatches {
		return true
	}
	var oldest apiPath
	for at, one := range w.all {
		if before := w.all[oldest]; before == nil || one.used.Before(before.used) {
			oldest = at
		}
	}
	if time.Since(w.all[oldest].used) < keepWatch {
		return false
	}
	w.remove(oldest)
	return true
}

// list is the answer to a list, in the order of the API server; false where it has
// become too large.
func (o *watch) list() ([]byte, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	switch {
	case o.outgrew:
		return nil, false
	case o.answer != nil && o.asOf == o.version:
		return o.answer, true
	}
	items := o.objects()
	for i, item := range items {
		if !o.typed {
			items[i] = without(item.(map[string]any), "kind", "apiVersion")
		}
	}
	whole := without(o.frame, "items")
	whole["items"] = items
	data, err := json.Marshal(whole)
	if err != nil || len(data) > 2*maxWatched {
		o.outgrew = true
		return nil, false
	}
	o.answer, o.asOf = data, o.version
	return data, true
}

// objects are all that is watched, in the order of the API server. They must not be
// changed.
func (o *watch) objects() []any {
	list := o.informer.GetStore().List()
	slices.SortFunc(list, func(a, b any) int {
		x, y := a.(*unstructured.Unstructured), b.(*unstructured.Unstructured)
		return cmp.Or(cmp.Compare(x.GetNamespace(), y.GetNamespace()), cmp.Compare(x.GetName(), y.GetName()))
	})
	for i, object := range list {
		list[i] = object.(*unstructured.Unstructured).Object
	}
	return list
}

func without(m map[string]any, keys ...string) map[string]any {
	out := make(map[string]any, len(m))
	for k, v := range m {
		if !slices.Contains(keys, k) {
			out[k] = v
		}
	}
	return out
}

// consider watches a place from now on, if its answer is small and shows the form
// that answers have. Secrets are not kept.
func (w *watches) consider(at apiPath, answer []byte) {
	if len(answer) > maxWatched || at.resource.Group == "" && at.resource.Resource == "secrets" {
		return
	}
	var frame map[string]any
	if err := json.Unmarshal(answer, &frame); err != nil {
		return
	}
	items, isList := frame["items"].([]any)
	if at.name == "" && (!isList || len(items) == 0) {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.all[at] != nil || w.ctx == nil || !w.makeRoom() {
		return
	}
	started := w.start(w.ctx, at)
	started.frame, started.used = frame, time.Now()
	if len(items) > 0 {
		first, _ := items[0].(map[string]any)
		_, started.typed = first["kind"]
	}
	w.all[at] = started
}

// syncInterval is how often caches that are not watches are looked at.
const syncInterval = time.Minute
