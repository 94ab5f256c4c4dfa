package live

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"

	"github.com/kvap/kvap/api/v1alpha1"
	"github.com/kvap/kvap/internal/cluster"
	"github.com/kvap/kvap/migrate"
)

// fieldManager is the name under which the command line writes.
const fieldManager = "kvap-cli"

// A moveWriter carries moves out.
type moveWriter struct{ *cluster.Connection }

// resource is where objects of a kind are.
func (w moveWriter) resource(o *unstructured.Unstructured) (dynamic.ResourceInterface, error) {
	gvk := o.GroupVersionKind()
	m, err := w.Mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	if err != nil {
		return nil, err
	}
	return w.Dynamic.Resource(m.Resource).Namespace(o.GetNamespace()), nil // of which there is none in a cluster's own
}

// dry is the option by which an API server only tries.
func dry(yes bool) []string {
	if yes {
		return []string{metav1.DryRunAll}
	}
	return nil
}

// update changes an object, if it is still of the version that was read.
func (w moveWriter) update(ctx context.Context, o *unstructured.Unstructured, dryRun bool) (*unstructured.Unstructured, error) {
	r, err := w.resource(o)
	if err != nil {
		return nil, err
	}
	return r.Update(ctx, o, metav1.UpdateOptions{FieldManager: fieldManager, DryRun: dry(dryRun)})
}

// put makes an object, or changes the one that was read.
func (w moveWriter) put(ctx context.Context, o *unstructured.Unstructured, dryRun bool) error {
	if o.GetResourceVersion() != "" {
		_, err := w.update(ctx, o, dryRun)
		return err
	}
	r, err := w.resource(o)
	if err != nil {
		return err
	}
	_, err = r.Create(ctx, o, metav1.CreateOptions{FieldManager: fieldManager, DryRun: dry(dryRun)})
	return err
}

// remove deletes an object, if it is still as it was read.
func (w moveWriter) remove(ctx context.Context, o *unstructured.Unstructured, dryRun bool) error {
	r, err := w.resource(o)
	if err != nil {
		return err
	}
	uid, version := o.GetUID(), o.GetResourceVersion()
	err = r.Delete(ctx, o.GetName(), metav1.DeleteOptions{
		DryRun: dry(dryRun), Preconditions: &metav1.Preconditions{UID: &uid, ResourceVersion: &version},
	})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// Record writes a record, where it is still as it was read, or has the API server try that.
func Record(ctx context.Context, c *cluster.Connection, m *v1alpha1.Migration, dryRun bool) error {
	data, err := runtime.DefaultUnstructuredConverter.ToUnstructured(m)
	if err != nil {
		return err
	}
	return moveWriter{c}.put(ctx, &unstructured.Unstructured{Object: data}, dryRun)
}

// make carries a move out.
func (w moveWriter) make(ctx context.Context, m *migrate.Move) error {
	switch {
	case m.Record != nil:
		return Record(ctx, w.Connection, m.Record, false)
	case m.Write != nil:
		return w.put(ctx, m.Write, false)
	case m.Delete != nil:
		return w.remove(ctx, m.Delete, false)
	}
	return nil
}

// try has the API server try a move. What a later move changes that an earlier one
// only would have made, cannot be tried.
func (w moveWriter) try(ctx context.Context, m *migrate.Move) error {
	err := error(nil)
	switch {
	case m.Write != nil:
		err = w.put(ctx, m.Write, true)
	case m.Delete != nil && m.Delete.GetResourceVersion() != "":
		err = w.remove(ctx, m.Delete, true)
	}
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}
