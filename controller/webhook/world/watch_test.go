package world

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	apiwatch "k8s.io/apimachinery/pkg/watch"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"
)

// Where more places are asked for than can be watched, those that are watched stay while
// they are asked for, and nothing is begun and ended at each request.
func TestWatchesDoNotThrash(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		resource := schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "widgets"}
		client := dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), map[schema.GroupVersionResource]string{resource: "WidgetList"})
		w := newWatches(client)
		w.begin(t.Context())
		place := func(i int) apiPath { return apiPath{resource: resource, namespace: strings.Repeat("x", i+1)} }
		ask := func(at apiPath) {
			if _, ok := w.answer(at); !ok {
				w.consider(at, []byte(`{"items":[{}]}`))
			}
			synctest.Wait()
		}
		lists := func() (n int) {
			for _, action := range client.Actions() {
				if action.GetVerb() == "list" {
					n++
				}
			}
			return n
		}
		for range 3 { // of a path with a namespace in it, in more namespaces than are watched
			for i := range maxWatches + 10 {
				ask(place(i))
			}
		}
		if lists() != maxWatches {
			t.Errorf("%d lists were begun for %d places; want %d", lists(), maxWatches+10, maxWatches)
		}
		for range 4 { // all but one are asked for again and again
			time.Sleep(2 * time.Minute)
			for i := range maxWatches - 1 {
				ask(place(i))
			}
		}
		ask(place(maxWatches))
		if _, ok := w.answer(place(maxWatches)); !ok {
			t.Error("a place is not watched in place of one that nobody asks for any more")
		}
		if _, ok := w.answer(place(maxWatches - 1)); ok {
			t.Error("a place is watched that nobody asks for any more")
		}
	})
}

// Where a watch cannot go on, for instance because the permission is gone, the API server
// is asked again: nobody judges by what was.
func TestWatchThatCannotGoOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		at := apiPath{resource: schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "widgets"}, namespace: "shop"}
		client := dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(),
			map[schema.GroupVersionResource]string{at.resource: "WidgetList"}, widget("a", "blue"))
		open, may := apiwatch.NewFake(), true
		client.PrependWatchReactor("*", func(clienttesting.Action) (bool, apiwatch.Interface, error) {
			if !may {
				return true, nil, apierrors.NewForbidden(at.resource.GroupResource(), "", nil)
			}
			return true, open, nil
		})
		w := newWatches(client)
		w.begin(t.Context())
		w.consider(at, []byte(`{"kind":"WidgetList","items":[{"metadata":{"name":"a"}}]}`))
		time.Sleep(10 * time.Second)
		if _, ok := w.answer(at); !ok {
			t.Fatal("the place is not watched")
		}
		may = false
		open.Stop()
		time.Sleep(time.Minute)
		if answer, ok := w.answer(at); ok {
			t.Errorf("the answer is still %s", answer)
		}
	})
}
