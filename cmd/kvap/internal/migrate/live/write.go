package live

import (
	"context"
	"encoding/json"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kvap/kvap/api/v1alpha1"
	"github.com/kvap/kvap/cmd/kvap/internal/migrate"
	"github.com/kvap/kvap/internal/cluster"
)

// fieldManager is the name under which the command line writes.
const fieldManager = "kvap-cli"

// resource is where objects of a kind are.
func resource(c *cluster.Connection, o *unstructured.Unstructured) (dynamic.ResourceInterface, error) {
	gvk := o.GroupVersionKind()
	m, err := c.Mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	if err != nil {
		return nil, err
	}
	return c.Dynamic.Resource(m.Resource).Namespace(o.GetNamespace()), nil // of which there is none in a cluster's own
}

// put makes an object, or changes one that is still of the version that was read.
func put(ctx context.Context, c *cluster.Connection, o *unstructured.Unstructured, dryRun ...string) (*unstructured.Unstructured, error) {
	r, err := resource(c, o)
	if err != nil {
		return nil, err
	}
	if o.GetResourceVersion() != "" {
		return r.Update(ctx, o, metav1.UpdateOptions{FieldManager: fieldManager, DryRun: dryRun})
	}
	return r.Create(ctx, o, metav1.CreateOptions{FieldManager: fieldManager, DryRun: dryRun})
}

// Record writes a record, where it is still as it was read; with metav1.DryRunAll, the API
// server only tries that.
func Record(ctx context.Context, c *cluster.Connection, m *v1alpha1.Migration, dryRun ...string) error {
	data, err := runtime.DefaultUnstructuredConverter.ToUnstructured(m)
	if err == nil {
		_, err = put(ctx, c, &unstructured.Unstructured{Object: data}, dryRun...)
	}
	return err
}

// carryOut makes a move, or has the API server try it. What is deleted must be as it was read.
func carryOut(ctx context.Context, c *cluster.Connection, m *migrate.Move, dryRun ...string) error {
	switch {
	case m.Record != nil:
		return Record(ctx, c, m.Record, dryRun...)
	case m.Write != nil:
		_, err := put(ctx, c, m.Write, dryRun...)
		return err
	case m.Delete != nil:
		r, err := resource(c, m.Delete)
		if err != nil {
			return err
		}
		uid, version := m.Delete.GetUID(), m.Delete.GetResourceVersion()
		return client.IgnoreNotFound(r.Delete(ctx, m.Delete.GetName(), metav1.DeleteOptions{
			DryRun: dryRun, Preconditions: &metav1.Preconditions{UID: &uid, ResourceVersion: &version},
		}))
	}
	return nil
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
	r.trying.Lock()
	defer r.trying.Unlock()
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
		_, err := put(ctx, c, o, metav1.DryRunAll)
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
