package controller

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	apischema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/kvap/kvap/api/v1alpha1"
)

// A watcher watches the kinds of policies that the cluster defines, as they come
// and go.
type watcher struct {
	cache     cache.Cache
	client    client.Reader
	discovery discovery.DiscoveryInterface
	changed   func() // there is something new
	edited    *editMarker
	outages   *outages

	watched map[string]apischema.GroupVersionKind // by definition
	missed  map[string]time.Time                  // definitions that were not served, and since when
	absent  map[string]bool                       // definitions that were not there when this process looked
	later   map[string]time.Time                  // definitions whose objects could not be listed, and when to try again
	asked   bool                                  // the namespaces are watched
	own     map[string]bool                       // kvap's own definitions, of which the objects are watched
}

func newWatcher(cache cache.Cache, client client.Reader, discovery discovery.DiscoveryInterface, changed func(), edited *editMarker, outages *outages) *watcher {
	return &watcher{
		cache: cache, client: client, discovery: discovery, changed: changed, edited: edited, outages: outages,
		watched: map[string]apischema.GroupVersionKind{}, missed: map[string]time.Time{}, absent: map[string]bool{}, later: map[string]time.Time{}, own: map[string]bool{},
	}
}

// definitionsList are the CustomResourceDefinitions of the cluster, without what
// they say.
func definitionsList() *metav1.PartialObjectMetadataList {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(apischema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinitionList"})
	return list
}

// definitions are the names of the CustomResourceDefinitions, and a text that
// differs when one of them does.
func (w *watcher) definitions(ctx context.Context) (names map[string]bool, state string, err error) {
	list := definitionsList()
	if err := w.client.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
		return nil, "", err
	}
	names = map[string]bool{}
	var all []string
	for i := range list.Items {
		o := &list.Items[i]
		if o.DeletionTimestamp == nil {
			names[o.Name] = true
		}
		all = append(all, fmt.Sprintf("%s/%s/%d", o.Name, o.UID, o.Generation))
	}
	slices.Sort(all)
	return names, strings.Join(all, "\n"), nil
}

// update watches what is defined, and stops where that is no longer so. waiting
// tells that a definition is not yet served.
func (w *watcher) update(ctx context.Context, defined map[string]bool) (watched map[string]apischema.GroupVersionKind, waiting bool, err error) {
	for _, kind := range sourceKinds() {
		if name := kind.definition(); !defined[name] {
			w.absent[name] = true
			delete(w.later, name)
			if gvk, on := w.watched[name]; on {
				if err := w.cache.RemoveInformer(ctx, unstructuredOf(gvk)); err != nil {
					return nil, false, err
				}
				delete(w.watched, name)
			}
			continue
		}
		late, err := w.follow(ctx, kind, time.Now())
		if err != nil {
			return nil, false, err
		}
		waiting = waiting || late
	}
	return w.watched, waiting, nil
}

// follow watches a kind that is defined, in the first of its versions that is served.
// That may change while the controller runs, as when Kyverno is upgraded.
func (w *watcher) follow(ctx context.Context, kind sourceKind, now time.Time) (waiting bool, err error) {
	name := kind.definition()
	old, on := w.watched[name]
	if on && !w.outages.begun(old) || now.Before(w.later[name]) {
		return !on, nil
	}
	gvk, ok, err := w.servedVersion(kind)
	switch {
	case err != nil:
		return false, err
	case on && (!ok || gvk == old): // it is told of as an outage
		return false, nil
	case !ok && w.mayComeUp(name, now):
		return false, fmt.Errorf("%s is defined and not yet served: its objects are not known", name)
	case !ok:
		return true, nil
	}
	if w.absent[name] { // there is nothing in force that its objects ask for
		if err := w.start(ctx, gvk, newTimeout); err != nil {
			log.FromContext(ctx).Error(err, "the kind is left out for now")
			w.later[name] = now.Add(listTimeout)
			return true, nil
		}
	} else if err := w.start(ctx, gvk, listTimeout); err != nil {
		return false, err
	}
	w.watched[name] = gvk
	w.outages.over(gvk)
	delete(w.missed, name)
	delete(w.absent, name)
	if on {
		return false, w.cache.RemoveInformer(ctx, unstructuredOf(old))
	}
	return false, nil
}

// comeUpTime is how long an API server may take to serve what is defined, as after it
// was started anew.
const comeUpTime = 20 * time.Second

// mayComeUp tells of a kind that may be served soon. Policies of such a kind are not
// gone: whoever takes them as gone removes what enforces them.
func (w *watcher) mayComeUp(name string, now time.Time) bool {
	if _, known := w.missed[name]; !known {
		w.missed[name] = now
	}
	return now.Sub(w.missed[name]) < comeUpTime
}

// updateOwn watches what the controller writes, so that it is restored when somebody
// else changes it, and the records that it goes by. Without the definitions there is nothing to begin with. What is watched
// once stays so: the client waits to hear of what it wrote from where it listened first,
// and where that has ended it would wait for ever.
func (w *watcher) updateOwn(ctx context.Context, defined map[string]bool) error {
	for definition, o := range map[string]client.Object{
		"policytranslations." + v1alpha1.Group: &v1alpha1.PolicyTranslation{},
		"params." + v1alpha1.Group:             &v1alpha1.Params{},
		"migrations." + v1alpha1.Group:         &v1alpha1.Migration{},
	} {
		if !defined[definition] {
			return errNotInstalled
		}
		if w.own[definition] {
			continue
		}
		if _, err := w.inform(ctx, o); err != nil {
			return err
		}
		w.own[definition] = true
	}
	return nil
}

// servedVersion is the version of a kind to watch, of those that are served.
func (w *watcher) servedVersion(kind sourceKind) (apischema.GroupVersionKind, bool, error) {
	for _, version := range kind.versions {
		gvk := kind.at(version)
		resources, err := w.discovery.ServerResourcesForGroupVersion(gvk.GroupVersion().String())
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return gvk, false, err
		}
		if slices.ContainsFunc(resources.APIResources, func(r metav1.APIResource) bool { return r.Name == kind.plural }) {
			return gvk, true, nil
		}
	}
	return apischema.GroupVersionKind{}, false, nil
}

// listTimeout is how long the first look at the objects of a kind may take, and
// newTimeout of a kind that was defined a moment ago, which has few.
const (
	listTimeout = 30 * time.Second
	newTimeout  = 5 * time.Second
)

func (w *watcher) start(ctx context.Context, gvk apischema.GroupVersionKind, patience time.Duration) error {
	o := unstructuredOf(gvk)
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	informer, err := w.inform(ctx, o)
	if err != nil {
		return err
	}
	if _, err := informer.AddEventHandler(w.edited.handler()); err != nil {
		return err
	}
	if !toolscache.WaitForCacheSync(ctx.Done(), informer.HasSynced) {
		if err := w.cache.RemoveInformer(context.WithoutCancel(ctx), o); err != nil {
			return err
		}
		return fmt.Errorf("the objects of %s cannot be listed", gvk)
	}
	return nil
}

// inform has every change of objects of a kind lead to a pass.
func (w *watcher) inform(ctx context.Context, kind client.Object) (cache.Informer, error) {
	informer, err := w.cache.GetInformer(ctx, kind, cache.BlockUntilSynced(false))
	if err != nil {
		return nil, err
	}
	_, err = informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc: func(any) { w.changed() },
		UpdateFunc: func(before, after any) {
			if !isSame(before, after) {
				w.changed()
			}
		},
		DeleteFunc: func(any) { w.changed() },
	})
	return informer, err
}

// isSame reports whether an object is as it was before, or, of a policy, whether only its status is
// another one.
func isSame(before, after any) bool {
	a, ok := before.(metav1.Object)
	b, also := after.(metav1.Object)
	if !ok || !also {
		return false
	}
	if a.GetResourceVersion() == b.GetResourceVersion() {
		return true
	}
	was, ok := before.(*unstructured.Unstructured)
	is, also := after.(*unstructured.Unstructured)
	return ok && also && was.GetGeneration() == is.GetGeneration() && versionOf(was) == versionOf(is)
}

func unstructuredOf(gvk apischema.GroupVersionKind) *unstructured.Unstructured {
	o := &unstructured.Unstructured{}
	o.SetGroupVersionKind(gvk)
	return o
}

// Outages are the kinds whose objects an API server refuses to list or watch, as where
// a permission was taken away, or a version is served no more. What is known of them
// grows old, and nothing else would tell.
type outages struct {
	changed func()
	now     func() time.Time

	mu   sync.Mutex
	seen map[string]outage // by the informer's name of the kind
}

type outage struct {
	since, last time.Time
	err         error
}

// Statuses tell of an outage that has lasted this long: API servers that start refuse what
// they do not know yet. It is over when no attempt has failed for outageEnds, because informers
// try again within a minute.
const (
	outageLasts = 20 * time.Second
	outageEnds  = 90 * time.Second
)

// lasts tells of attempts that have failed for long; when the last one did does not matter.
func (o outage) lasts() bool { return o.last.Sub(o.since) >= outageLasts }

func newOutages(changed func()) *outages {
	return &outages{changed: changed, now: time.Now, seen: map[string]outage{}}
}

// failed is told of each attempt to list or watch that failed.
func (o *outages) failed(ctx context.Context, r *toolscache.Reflector, err error) {
	toolscache.DefaultWatchErrorHandler(ctx, r, err)
	if refused(err) {
		o.note(r.TypeDescription(), err)
		o.changed()
	}
}

func (o *outages) note(kind string, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	now := o.now()
	have, ok := o.seen[kind]
	if !ok || now.Sub(have.last) > outageEnds {
		have.since = now
	}
	have.last, have.err = now, err
	o.seen[kind] = have
}

// over is told of a kind whose objects were listed.
func (o *outages) over(kind apischema.GroupVersionKind) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.seen, kind.String())
}

// refused tells of an answer of an API server that may stay what it is. One that is
// away, or busy, or asks to list anew, is none.
func refused(err error) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) || apierrors.IsResourceExpired(err) || apierrors.IsGone(err) {
		return false
	}
	code := int(status.Status().Code)
	return code >= http.StatusBadRequest && code <= http.StatusInternalServerError && code != http.StatusTooManyRequests
}

// begun tells that the last attempts at a kind failed, be it for a moment.
func (o *outages) begun(kind apischema.GroupVersionKind) bool {
	_, ok := o.current()[kind.String()]
	return ok
}

// of is why nothing is heard of a kind, since when; nil where it is.
func (o *outages) of(kind apischema.GroupVersionKind) error {
	have, ok := o.current()[kind.String()]
	if !ok || !have.lasts() {
		return nil
	}
	return fmt.Errorf("since %s: %w", have.since.UTC().Format(time.RFC3339), have.err)
}

// lasting is of how many kinds nothing is heard.
func (o *outages) lasting() (n int) {
	for _, have := range o.current() {
		if have.lasts() {
			n++
		}
	}
	return n
}

// current are the outages, be it for a moment.
func (o *outages) current() map[string]outage {
	o.mu.Lock()
	defer o.mu.Unlock()
	maps.DeleteFunc(o.seen, func(_ string, have outage) bool { return o.now().Sub(have.last) > outageEnds })
	return maps.Clone(o.seen)
}

// longestRetry is how long a pass waits at most for what API servers may know any moment.
const longestRetry = time.Minute

// lateBackoff is since when there is something that API servers do not know yet, by what it is.
// They may know it soon, or never, as where a definition is not accepted.
type lateBackoff struct{ since map[string]time.Time }

// next is when to look again: soon where something is late for a moment, and later the longer
// all of it is. It is zero where nothing is late.
func (l *lateBackoff) next(late []string, now time.Time) time.Duration {
	since, wait := map[string]time.Time{}, time.Duration(0)
	for _, what := range late {
		at, known := l.since[what]
		if !known {
			at = now
		}
		since[what] = at
		if own := min(max(retryAfter, now.Sub(at)/4), longestRetry); wait == 0 || own < wait {
			wait = own
		}
	}
	l.since = since
	return wait
}
