package controller

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/kvap/kvap/api/v1alpha1"
)

// paramSync keeps an object of kvap's Params for each ConfigMap that native rules
// read. It watches only ConfigMaps of the names that are read.
type paramSync struct {
	kube    kubernetes.Interface
	writer  *writer
	changed func() // a ConfigMap has come or gone: whether rules have their params may differ
	queue   workqueue.TypedRateLimitingInterface[types.NamespacedName]

	mu      sync.Mutex
	watches map[configMapRef]*configMapWatch
}

// A configMapWatch knows the ConfigMaps of a name, in one namespace or in all.
type configMapWatch struct {
	informer cache.SharedIndexInformer
	stop     chan struct{}
	failed   atomic.Pointer[error] // the last of reading
}

// syncTimeout is how long a pass waits for the first look at ConfigMaps.
const syncTimeout = 10 * time.Second

func newParamSync(kube kubernetes.Interface, w *writer, changed func()) *paramSync {
	return &paramSync{
		kube: kube, writer: w, changed: changed, watches: map[configMapRef]*configMapWatch{},
		queue: workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[types.NamespacedName]()),
	}
}

// Start works until the context ends.
func (s *paramSync) Start(ctx context.Context) error {
	go func() {
		<-ctx.Done()
		s.queue.ShutDown()
		s.watch(nil)
	}()
	for {
		key, done := s.queue.Get()
		if done {
			return nil
		}
		var err error
		// Where there is no ConfigMap the params stay: rules that are judged by them are handed over before.
		if from := s.configMap(key); from != nil {
			err = s.write(ctx, from)
		}
		if err != nil && !errors.Is(err, errGoing) {
			log.FromContext(ctx).Error(err, "params", "namespace", key.Namespace, "name", key.Name)
			s.queue.AddRateLimited(key)
		} else {
			s.queue.Forget(key)
		}
		s.queue.Done(key)
	}
}

// find finds the ConfigMaps that rules read. What rules still read that are about to go is
// followed, and not found. unread are those that cannot be read, and why.
func (s *paramSync) find(ctx context.Context, refs, still []configMapRef) (_ foundConfigMaps, unread map[configMapRef]error) {
	s.watch(slices.Concat(refs, still))
	bounded, cancel := context.WithTimeout(ctx, syncTimeout)
	defer cancel()
	out, unread := foundConfigMaps{}, map[configMapRef]error{}
	for _, ref := range refs {
		s.mu.Lock()
		w := s.watches[ref]
		s.mu.Unlock()
		if w == nil || !cache.WaitForCacheSync(bounded.Done(), w.informer.HasSynced) {
			var failure error // of the last attempt
			if w != nil && w.failed.Load() != nil {
				failure = *w.failed.Load()
			}
			unread[ref] = fmt.Errorf("ConfigMaps cannot be read: %w", cmp.Or(s.standIn(ctx, ref, out), failure, context.Cause(bounded)))
			continue
		}
		for _, o := range w.informer.GetStore().List() {
			cm := o.(*corev1.ConfigMap)
			out[refOf(cm)] = cm
		}
	}
	return out, unread
}

// standIn has params stand for ConfigMaps that cannot be read: they were there.
func (s *paramSync) standIn(ctx context.Context, ref configMapRef, out foundConfigMaps) error {
	var all v1alpha1.ParamsList
	if err := s.writer.client.List(ctx, &all, client.UnsafeDisableDeepCopy, client.InNamespace(ref.namespace)); err != nil {
		return err
	}
	for i := range all.Items {
		if all.Items[i].Name == ref.name {
			out[refOf(&all.Items[i])] = nil
		}
	}
	return nil
}

// ensure makes params of the ConfigMaps that were found. unwritten are those that are not
// there, because they cannot be written, and why; others may be there and be old. Where
// their namespace goes that is not an error: nobody need try again.
func (s *paramSync) ensure(ctx context.Context, in foundConfigMaps) (unwritten map[configMapRef]error, err error) {
	unwritten = map[configMapRef]error{}
	byName := func(a, b configMapRef) int {
		return cmp.Or(cmp.Compare(a.namespace, b.namespace), cmp.Compare(a.name, b.name))
	}
	for _, ref := range slices.SortedFunc(maps.Keys(in), byName) {
		key := ref.key()
		cm := cmp.Or(s.configMap(key), in[ref])
		if cm == nil {
			continue
		}
		failed := s.write(ctx, cm)
		if failed == nil {
			continue
		}
		if !errors.Is(failed, errGoing) {
			err = cmp.Or(err, fmt.Errorf("params %s: %w", key, failed))
		}
		if there := s.writer.client.Get(ctx, key, &v1alpha1.Params{}); apierrors.IsNotFound(there) {
			unwritten[ref] = failed
		}
	}
	return unwritten, err
}

// clean removes the params that no rule reads, and those of ConfigMaps that do not exist
// and were not found. It comes after API servers were seen to judge no longer by what read
// them: for want of its params a rule denies. What was found is judged by, though it may
// have gone since: rules are handed over first, by the next pass. What is read still was to
// be handed over, and could not be.
func (s *paramSync) clean(ctx context.Context, refs, still []configMapRef, in foundConfigMaps) error {
	s.watch(slices.Concat(refs, still))
	var all v1alpha1.ParamsList
	if err := s.writer.client.List(ctx, &all, client.UnsafeDisableDeepCopy); err != nil {
		return err
	}
	for i := range all.Items {
		have := &all.Items[i]
		ref := refOf(have)
		if in.has(ref) || slices.Contains(still, ref) || slices.Contains(still, configMapRef{"", ref.name}) || s.configMap(ref.key()) != nil || !isOurs(have) {
			continue
		}
		if err := s.writer.remove(ctx, have.DeepCopy()); err != nil {
			return err
		}
	}
	return nil
}

// write makes params of a ConfigMap, unless somebody wants others.
func (s *paramSync) write(ctx context.Context, from *corev1.ConfigMap) error {
	have := &v1alpha1.Params{}
	err := s.writer.client.Get(ctx, client.ObjectKeyFromObject(from), have)
	switch {
	case err != nil && !apierrors.IsNotFound(err):
		return err
	case err == nil && !isOurs(have):
		return nil
	case err == nil && maps.Equal(have.Data, from.Data) && contains(have.Labels, ownLabels(nil)):
		return nil
	}
	want := &v1alpha1.Params{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion().String(), Kind: "Params"},
		ObjectMeta: metav1.ObjectMeta{Namespace: from.Namespace, Name: from.Name, Labels: ownLabels(nil)},
		Data:       from.Data,
	}
	err = s.writer.apply(ctx, want)
	if apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) || apierrors.IsNotFound(err) {
		return errGoing
	}
	if err == nil && !maps.Equal(want.Data, from.Data) { // somebody has added keys
		want.Data = from.Data
		return s.writer.replace(ctx, want)
	}
	return err
}

// errGoing is a namespace in which nothing can be made any more. With it the ConfigMap goes
// as well, at a time that nobody knows.
var errGoing = errors.New("its namespace is being deleted")

// configMap is the ConfigMap of a name, if rules read it.
func (s *paramSync) configMap(key types.NamespacedName) *corev1.ConfigMap {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, namespace := range []string{key.Namespace, ""} {
		w, ok := s.watches[configMapRef{namespace, key.Name}]
		if !ok {
			continue
		}
		if o, ok, _ := w.informer.GetStore().GetByKey(key.String()); ok {
			return o.(*corev1.ConfigMap)
		}
	}
	return nil
}

// watch watches these ConfigMaps and no others.
func (s *paramSync) watch(refs []configMapRef) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for ref, w := range s.watches {
		if !slices.Contains(refs, ref) {
			close(w.stop)
			delete(s.watches, ref)
		}
	}
	for _, ref := range refs {
		if s.watches[ref] == nil { // refs may have it twice
			s.watches[ref] = s.start(ref)
		}
	}
}

// start watches the ConfigMaps of a name.
func (s *paramSync) start(ref configMapRef) *configMapWatch {
	named := func(o *metav1.ListOptions) {
		o.FieldSelector = fields.OneTermEqualSelector("metadata.name", ref.name).String()
	}
	lw := cache.NewFilteredListWatchFromClient(s.kube.CoreV1().RESTClient(), "configmaps", ref.namespace, named)
	w := &configMapWatch{informer: cache.NewSharedIndexInformer(lw, &corev1.ConfigMap{}, 0, cache.Indexers{}), stop: make(chan struct{})}
	heard := func(o any, came bool) {
		if name, err := cache.DeletionHandlingObjectToName(o); err == nil {
			s.queue.Add(types.NamespacedName(name))
		}
		if came {
			s.changed()
		}
	}
	_, _ = w.informer.AddEventHandler(cache.ResourceEventHandlerFuncs{ // an error tells of an informer that has stopped
		AddFunc:    func(o any) { heard(o, true) },
		UpdateFunc: func(_, o any) { heard(o, false) },
		DeleteFunc: func(o any) { heard(o, true) },
	})
	_ = w.informer.SetWatchErrorHandlerWithContext(func(ctx context.Context, r *cache.Reflector, err error) {
		w.failed.Store(&err)
		cache.DefaultWatchErrorHandler(ctx, r, err)
	})
	_ = w.informer.SetTransform(trimManagedFields) // an error tells of an informer that has started
	go w.informer.Run(w.stop)
	return w
}

// foundConfigMaps are the ConfigMaps that a pass has rules judged by: those that exist when it
// begins. Of one that cannot be read there are only the params that were made of it, and
// nil stands for it.
type foundConfigMaps map[configMapRef]*corev1.ConfigMap

// has tells that a ConfigMap was found.
func (f foundConfigMaps) has(ref configMapRef) bool {
	_, ok := f[ref]
	return ok
}
