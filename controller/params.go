package controller

import (
	"context"
	"fmt"
	"slices"
	"sync"
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
		if err := s.sync(ctx, key, false); err != nil {
			log.FromContext(ctx).Error(err, "params", "namespace", key.Namespace, "name", key.Name)
			s.queue.AddRateLimited(key)
		} else {
			s.queue.Forget(key)
		}
		s.queue.Done(key)
	}
}

// missing are the ConfigMaps that rules read and that do not exist. Those of the
// namespace of each object are not missed: who asks for an object where there is none is
// told by the rule. What rules still read that are about to go is followed, and not
// missed.
func (s *paramSync) missing(ctx context.Context, refs, still []configMapRef) ([]configMapRef, error) {
	s.watch(slices.Concat(refs, still))
	ctx, cancel := context.WithTimeout(ctx, syncTimeout)
	defer cancel()
	var out []configMapRef
	for _, ref := range refs {
		w := s.watchOf(ref)
		if w == nil || !cache.WaitForCacheSync(ctx.Done(), w.informer.HasSynced) {
			return nil, context.Cause(ctx)
		}
		if ref.namespace != "" && len(w.informer.GetStore().List()) == 0 {
			out = append(out, ref)
		}
	}
	return out, nil
}

// without are the ConfigMaps of namespaces that have none, of those that rules read in
// the namespace of each object.
func (s *paramSync) without(refs []configMapRef, all []namespace) []configMapRef {
	var out []configMapRef
	for _, ref := range refs {
		if ref.namespace != "" {
			continue
		}
		for _, n := range all {
			if s.configMap(types.NamespacedName{Namespace: n.name, Name: ref.name}) == nil {
				out = append(out, configMapRef{n.name, ref.name})
			}
		}
	}
	return out
}

// ensure makes the params that rules read, of the ConfigMaps that exist. unwritten are
// those that are not there, because they cannot be written, and why; others may be there
// and be old.
func (s *paramSync) ensure(ctx context.Context, refs []configMapRef) (unwritten map[configMapRef]error, err error) {
	unwritten = map[configMapRef]error{}
	for _, ref := range refs {
		for _, o := range s.watchOf(ref).informer.GetStore().List() {
			key := client.ObjectKeyFromObject(o.(*corev1.ConfigMap))
			failed := s.sync(ctx, key, false)
			if failed == nil {
				continue
			}
			err = firstError(err, fmt.Errorf("params %s: %w", key, failed))
			there := s.writer.client.Get(ctx, key, &v1alpha1.Params{})
			if apierrors.IsNotFound(there) {
				unwritten[configMapRef{key.Namespace, key.Name}] = failed
			}
		}
	}
	return unwritten, err
}

// clean removes the params that no rule reads. It comes after API servers were seen to
// judge no longer by what read them: for want of its params a rule denies.
func (s *paramSync) clean(ctx context.Context, refs []configMapRef) error {
	s.watch(refs)
	var all v1alpha1.ParamsList
	if err := s.writer.client.List(ctx, &all, client.UnsafeDisableDeepCopy); err != nil {
		return err
	}
	for i := range all.Items {
		if err := s.sync(ctx, client.ObjectKeyFromObject(&all.Items[i]), true); err != nil {
			return err
		}
	}
	return nil
}

// sync brings one object of Params to what its ConfigMap says. Where there is none it
// goes only if it is told so: before, rules that are judged by it are handed over.
func (s *paramSync) sync(ctx context.Context, key types.NamespacedName, clean bool) error {
	from := s.configMap(key)
	have := &v1alpha1.Params{}
	err := s.writer.client.Get(ctx, key, have)
	switch {
	case err != nil && !apierrors.IsNotFound(err):
		return err
	case err == nil && !isOurs(have): // somebody wants other params than the ConfigMap
		return nil
	case from == nil && (err != nil || !clean):
		return nil
	case from == nil:
		return s.writer.remove(ctx, have)
	case err == nil && sameData(have.Data, from.Data) && contains(have.Labels, ownLabels(nil)):
		return nil
	}
	want := &v1alpha1.Params{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion().String(), Kind: "Params"},
		ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name, Labels: ownLabels(nil)},
		Data:       from.Data,
	}
	err = s.writer.apply(ctx, want)
	if apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) || apierrors.IsNotFound(err) {
		return nil // with its namespace the ConfigMap goes as well
	}
	if err == nil && !sameData(want.Data, from.Data) { // somebody has added keys
		want.Data = from.Data
		return s.writer.replace(ctx, want)
	}
	return err
}

func sameData(a, b map[string]string) bool { return len(a) == len(b) && contains(a, b) }

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

func (s *paramSync) watchOf(ref configMapRef) *configMapWatch {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.watches[ref]
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
		if key, err := cache.DeletionHandlingMetaNamespaceKeyFunc(o); err == nil {
			namespace, name, _ := cache.SplitMetaNamespaceKey(key)
			s.queue.Add(types.NamespacedName{Namespace: namespace, Name: name})
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
	_ = w.informer.SetTransform(trimManagedFields) // an error tells of an informer that has started
	go w.informer.Run(w.stop)
	return w
}
