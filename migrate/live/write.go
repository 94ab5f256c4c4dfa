package live

import (
	"context"
	"encoding/json"
	"strings"

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

// tryClosed has the API server try whether it takes a policy such as the one of a PolicyState,
// and notes in the state what it says where it does not. It is a new one that is tried, the
// same but for its name: some of Kyverno's guards let pass what changes metadata alone.
// Where it may not be tried, nothing is known, and the first write will tell.
func (r *Reader) tryClosed(ctx context.Context, w *migrate.PolicyState) error {
	if !migrate.IsLegacy(w.Ref) || w.Unserved {
		return nil
	}
	from := w.Source
	if from == nil && w.Record != nil && w.Record.Status.Original != nil {
		from = &unstructured.Unstructured{}
		if json.Unmarshal([]byte(w.Record.Status.Original.Policy), &from.Object) != nil {
			return nil
		}
	}
	if from == nil {
		return nil
	}
	says, err := Closed(ctx, r.Connection, from)
	if err != nil {
		return err
	}
	w.Closed = says
	r.closed[w.Name] = says
	return nil
}

// Closed is what the API server says to those who make policies of the kind of one; ""
// where it takes them. Somebody may have something against this one alone, so a plain one
// is tried too.
func Closed(ctx context.Context, c *cluster.Connection, like *unstructured.Unstructured) (string, error) {
	same := &unstructured.Unstructured{Object: map[string]any{"spec": like.DeepCopy().Object["spec"]}}
	same.SetLabels(like.GetLabels())
	same.SetAnnotations(like.GetAnnotations())
	plain := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
		"validationFailureAction": "Audit", "background": false,
		"rules": []any{map[string]any{
			"name":     "named",
			"match":    map[string]any{"any": []any{map[string]any{"resources": map[string]any{"kinds": []any{"ConfigMap"}}}}},
			"validate": map[string]any{"message": "It has a name.", "pattern": map[string]any{"metadata": map[string]any{"name": "?*"}}},
		}},
	}}}
	says := ""
	for _, o := range []*unstructured.Unstructured{same, plain} {
		o.SetAPIVersion(like.GetAPIVersion())
		o.SetKind(like.GetKind())
		o.SetNamespace(like.GetNamespace())
		o.SetGenerateName("kvap-tries-")
		err := moveWriter{c}.put(ctx, o, true)
		switch {
		case err == nil, isStatus(err) && !deniedByPolicy(err):
			return "", nil
		case !deniedByPolicy(err):
			return "", err
		}
		says = reasonOf(err)
	}
	return says, nil
}

// deniedByPolicy tells that a webhook or a ValidatingAdmissionPolicy has something against
// what was sent. Who may not send it at all does not know.
func deniedByPolicy(err error) bool {
	return isStatus(err) && (strings.Contains(err.Error(), "denied the request") || strings.Contains(err.Error(), "denied request"))
}

// reasonOf is what the API server said, without the name that was tried.
func reasonOf(err error) string {
	text := err.Error()
	if _, after, ok := strings.Cut(text, ": "); ok && strings.Contains(text[:len(text)-len(after)], "kvap-tries-") {
		text = after
	}
	return strings.TrimSpace(text)
}
