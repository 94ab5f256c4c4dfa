//go:build e2e

package attempt

import (
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	apischema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"

	"github.com/kvap/kvap/fixtures"
)

// A Collection is where objects are: a resource, and a namespace unless they have none.
type Collection struct {
	Resource  apischema.GroupVersionResource
	Namespace string
}

// In is the place as a client reaches it.
func (p Collection) In(client dynamic.Interface) dynamic.ResourceInterface {
	if p.Namespace == "" || p.Resource == Namespaces() {
		return client.Resource(p.Resource)
	}
	return client.Resource(p.Resource).Namespace(p.Namespace)
}

// Namespaces is where Namespaces are.
func Namespaces() apischema.GroupVersionResource {
	return apischema.GroupVersionResource{Version: "v1", Resource: "namespaces"}
}

// CustomKinds are the kinds that fixtures invent.
func CustomKinds() map[apischema.GroupVersionResource]string {
	return map[apischema.GroupVersionResource]string{
		{Group: "acme.io", Version: "v1", Resource: "widgets"}:          "Widget",
		{Group: "acme.io", Version: "v1", Resource: "gizmos"}:           "Gizmo",
		{Group: "serving.acme.io", Version: "v1", Resource: "services"}: "Service",
	}
}

// CustomKind is the kind of a resource among them.
func CustomKind(group, version, resource string) (kind string, ok bool) {
	kind, ok = CustomKinds()[apischema.GroupVersionResource{Group: group, Version: version, Resource: resource}]
	return kind, ok
}

// A Store makes for real what requests start from. Nothing judges it there.
type Store struct{ dynamic.Interface }

// Put makes an object, in place of one of that name, unless it is a Namespace: that
// gets the labels.
func (s Store) Put(t *testing.T, at Collection, o *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	t.Helper()
	client := at.In(s)
	made, err := client.Create(t.Context(), o, metav1.CreateOptions{})
	if !apierrors.IsAlreadyExists(err) {
		return made, err
	}
	old, err := client.Get(t.Context(), o.GetName(), metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	if at.Resource == Namespaces() {
		old.SetLabels(o.GetLabels())
		old.SetAnnotations(o.GetAnnotations())
		return client.Update(t.Context(), old, metav1.UpdateOptions{})
	}
	s.Remove(t, at, o.GetName())
	return client.Create(t.Context(), o, metav1.CreateOptions{})
}

// Label makes the namespace if need be, and gives it exactly these labels.
func (s Store) Label(t *testing.T, namespace string, labels map[string]string) error {
	t.Helper()
	o := &unstructured.Unstructured{}
	o.SetAPIVersion("v1")
	o.SetKind("Namespace")
	o.SetName(namespace)
	o.SetLabels(labels)
	_, err := s.Put(t, Collection{Resource: Namespaces()}, o)
	return err
}

// Remove deletes an object at once, whoever wants to see to it first: they are not there,
// and one of the same name could not be made again. Namespaces stay: their end takes long.
func (s Store) Remove(t *testing.T, at Collection, name string) {
	t.Helper()
	if at.Resource == Namespaces() {
		return
	}
	now := int64(0)
	_, err := at.In(s).Patch(t.Context(), name, types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		t.Error(err)
	}
	err = at.In(s).Delete(t.Context(), name, metav1.DeleteOptions{GracePeriodSeconds: &now})
	if err != nil && !apierrors.IsNotFound(err) {
		t.Error(err)
	}
}

// A Placed object is one that was made at a place.
type Placed struct {
	*unstructured.Unstructured
	At Collection
}

// Context makes the objects of a fixture that rules look up by name. They stay. What rules ask an
// API server for no native rule reads, and few of such objects are whole enough to be stored.
func (s Store) Context(t *testing.T, f fixtures.Fixture) (made []Placed) {
	t.Helper()
	var list []map[string]any
	if err := yaml.Unmarshal(f.Context, &list); err != nil {
		t.Fatal(err)
	}
	for _, o := range list {
		u := &unstructured.Unstructured{Object: normal(t, o)}
		at, named := contextAt(u)
		if !named {
			continue
		}
		if at.Namespace != "" {
			if err := s.Label(t, at.Namespace, nil); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := s.Put(t, at, u); err != nil {
			t.Fatal(err)
		}
		made = append(made, Placed{u, at})
	}
	return made
}

// contextAt is where an object is looked up by name; false for one that is not.
func contextAt(o *unstructured.Unstructured) (at Collection, named bool) {
	switch o.GetKind() {
	case "ConfigMap":
		return Collection{apischema.GroupVersionResource{Version: "v1", Resource: "configmaps"}, o.GetNamespace()}, true
	case "Params":
		return Collection{o.GroupVersionKind().GroupVersion().WithResource("params"), o.GetNamespace()}, true
	case "Namespace":
		return Collection{Resource: Namespaces()}, true
	}
	return Collection{}, false
}
