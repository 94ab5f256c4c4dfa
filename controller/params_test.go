package controller

import (
	"errors"
	"maps"
	"slices"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/kvap/kvap/api/v1alpha1"
)

// listed are ConfigMaps that change as a test says.
type listed struct {
	changes *watch.FakeWatcher
	items   []corev1.ConfigMap
}

func (l *listed) List(metav1.ListOptions) (runtime.Object, error) {
	return &corev1.ConfigMapList{Items: l.items}, nil
}

func (l *listed) Watch(metav1.ListOptions) (watch.Interface, error) { return l.changes, nil }

// IsWatchListSemanticsUnSupported has an informer list before it watches.
func (l *listed) IsWatchListSemanticsUnSupported() bool { return true }

// paramsOf keeps params of the ConfigMaps that a rule refers to, once the informer runs.
func paramsOf(t *testing.T, ref configMapRef, l *listed) (*paramSync, client.Client, cache.SharedIndexInformer) {
	t.Helper()
	scheme, err := newScheme()
	if err != nil {
		t.Fatal(err)
	}
	c := fake.NewClientBuilder().WithScheme(scheme).WithReturnManagedFields().Build()
	s := newParamSync(nil, &writer{client: c, direct: c, tell: func(string) {}}, func() {})
	t.Cleanup(s.queue.ShutDown)
	informer := cache.NewSharedIndexInformer(l, &corev1.ConfigMap{}, 0, cache.Indexers{})
	s.watches[ref] = &configMapWatch{informer: informer, stop: make(chan struct{})}
	return s, c, informer
}

// The params by which a pass has rules judged stay to its end, though their ConfigMap goes
// meanwhile: for want of them an API server refuses every request for the rules' kinds. The
// next pass hands the rules over first.
func TestConfigMapGoesDuringAPass(t *testing.T) {
	for _, namespace := range []string{"default", ""} {
		synctest.Test(t, func(t *testing.T) {
			cm := corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "teams"}}
			l := &listed{changes: watch.NewFake(), items: []corev1.ConfigMap{cm}}
			refs := []configMapRef{{namespace, "teams"}}
			s, c, informer := paramsOf(t, refs[0], l)
			go informer.Run(t.Context().Done())
			pass := func(meanwhile func()) error {
				t.Helper()
				in, unread := s.find(t.Context(), refs, nil)
				if len(unread) > 0 {
					t.Fatal(unread)
				}
				if _, err := s.ensure(t.Context(), in); err != nil {
					t.Fatal(err)
				}
				meanwhile()
				if err := s.clean(t.Context(), refs, nil, in); err != nil {
					t.Fatal(err)
				}
				return c.Get(t.Context(), client.ObjectKeyFromObject(&cm), &v1alpha1.Params{})
			}
			if err := pass(func() {
				l.changes.Delete(&cm)
				synctest.Wait()
			}); err != nil {
				t.Errorf("after the pass: %v", err)
			}
			if err := pass(func() {}); !apierrors.IsNotFound(err) {
				t.Errorf("after the next pass: %v", err)
			}
		})
	}
}

// Where ConfigMaps cannot be read nobody knows which params are wanted, and all stay.
func TestConfigMapsThatCannotBeRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		refs := []configMapRef{{"default", "teams"}}
		s, c, _ := paramsOf(t, refs[0], &listed{})
		made := &v1alpha1.Params{
			TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion().String(), Kind: "Params"},
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "teams", Labels: ownLabels(nil)},
		}
		if err := s.writer.apply(t.Context(), made); err != nil {
			t.Fatal(err)
		}
		in, unread := s.find(t.Context(), refs, nil)
		if unread[refs[0]] == nil {
			t.Error("they were read")
		}
		if lacking := (&paramResult{refs: refs, found: in}).lack(nil, nil); len(lacking) > 0 {
			t.Errorf("lacking: %v", lacking)
		}
		if err := s.clean(t.Context(), refs, nil, in); err != nil {
			t.Error(err)
		}
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(made), &v1alpha1.Params{}); err != nil {
			t.Error(err)
		}
	})
}

// Of a ConfigMap that cannot be read and of which there are no params, the rules are the
// webhook's, and the policy says why: no object is refused for want of params.
func TestConfigMapsThatCannotBeReadAndHaveNoParams(t *testing.T) {
	unreadable := errors.New("unreadable")
	o := &paramResult{
		refs:  []configMapRef{{"default", "there"}, {"default", "missing"}, {"default", "unread"}, {"", "teams"}, {"", "others"}},
		found: foundConfigMaps{{"apps", "teams"}: nil, {"default", "there"}: {}}, unwritten: map[configMapRef]error{},
	}
	lacked := o.lack([]namespace{{name: "apps"}, {name: "dev"}}, map[configMapRef]error{{"default", "unread"}: unreadable, {"", "teams"}: unreadable})
	if want := []configMapRef{{"default", "missing"}}; !slices.Equal(o.missing, want) {
		t.Errorf("missing: %v", o.missing)
	}
	if want := (map[configMapRef]error{{"default", "unread"}: unreadable, {"dev", "teams"}: unreadable}); !maps.Equal(o.unwritten, want) {
		t.Errorf("unwritten: %v", o.unwritten)
	}
	if want := []configMapRef{{"apps", "others"}, {"dev", "others"}}; !slices.Contains(lacked, want[0]) || !slices.Contains(lacked, want[1]) || len(lacked) != 5 {
		t.Errorf("lacked: %v", lacked)
	}
}

// Params stay that are read by what was to be handed over and could not be: an API server
// judges by them still.
func TestParamsThatAreReadStill(t *testing.T) {
	for _, still := range []configMapRef{{"default", "teams"}, {"", "teams"}} {
		s, c, _ := paramsOf(t, still, &listed{})
		made := &v1alpha1.Params{
			TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion().String(), Kind: "Params"},
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "teams", Labels: ownLabels(nil)},
		}
		if err := s.writer.apply(t.Context(), made); err != nil {
			t.Fatal(err)
		}
		if err := s.clean(t.Context(), nil, []configMapRef{still}, nil); err != nil {
			t.Fatal(err)
		}
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(made), &v1alpha1.Params{}); err != nil {
			t.Errorf("read as %v: %v", still, err)
		}
		if err := s.clean(t.Context(), nil, nil, nil); err != nil {
			t.Fatal(err)
		}
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(made), &v1alpha1.Params{}); !apierrors.IsNotFound(err) {
			t.Errorf("no longer read as %v: %v", still, err)
		}
	}
}

// Where a namespace is being deleted, its ConfigMap counts no longer: params go with
// it, before or after it.
func TestNamespaceThatGoes(t *testing.T) {
	o := &paramResult{refs: []configMapRef{{"going", "teams"}, {"apps", "teams"}}, found: foundConfigMaps{{"going", "teams"}: {}, {"apps", "teams"}: {}}, unwritten: map[configMapRef]error{}}
	all := []namespace{{name: "apps"}, {name: "going", going: true}}
	if got := o.lack(all, nil); !slices.Equal(got, []configMapRef{{"going", "teams"}}) || o.unwritten[got[0]] == nil {
		t.Errorf("by name: %v, unwritten %v", got, o.unwritten)
	}
	o.refs = []configMapRef{{"", "teams"}}
	if got := o.lack(all, nil); !slices.Contains(got, configMapRef{"going", "teams"}) || slices.Contains(got, configMapRef{"apps", "teams"}) {
		t.Errorf("of the object's own namespace: %v", got)
	}
	if len(o.missing) > 0 {
		t.Errorf("missing: %v", o.missing)
	}
}
