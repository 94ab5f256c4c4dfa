package defaulting

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	apischema "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kvap/kvap/schema"
)

// A Defaulter fills in objects as the API server of a cluster. It may be used by several
// goroutines.
type Defaulter struct {
	builtin *runtime.Scheme
	schemas *schema.Set
}

// New is the Defaulter of a cluster with these types.
func New(schemas *schema.Set) *Defaulter { return &Defaulter{builtin(), schemas} }

// Fill is an object with what an API server fills in. Without a Defaulter it is as it was.
func (d *Defaulter) Fill(object map[string]any) map[string]any {
	if d == nil {
		return object
	}
	gvk := (&unstructured.Unstructured{Object: object}).GroupVersionKind()
	if !d.builtin.Recognizes(gvk) {
		return d.fillCustom(object, schema.GVK(gvk))
	}
	typed, err := d.builtin.New(gvk)
	if err != nil || runtime.DefaultUnstructuredConverter.FromUnstructured(object, typed) != nil {
		return object
	}
	d.builtin.Default(typed)
	typed = d.converted(typed, gvk.GroupVersion())
	out, err := runtime.DefaultUnstructuredConverter.ToUnstructured(typed)
	if err != nil {
		return object
	}
	(&unstructured.Unstructured{Object: out}).SetGroupVersionKind(gvk)
	return out
}

// converted is an object as it comes out of an API server: converted to the version that the
// server works with, and back. The stringData of a Secret is its data then. Of a kind that
// nothing is to be converted of it is as it was.
func (d *Defaulter) converted(typed runtime.Object, version apischema.GroupVersion) runtime.Object {
	internal, err := d.builtin.ConvertToVersion(typed, runtime.InternalGroupVersioner)
	if err != nil {
		return typed
	}
	out, err := d.builtin.ConvertToVersion(internal, version)
	if err != nil {
		return typed
	}
	return out
}
