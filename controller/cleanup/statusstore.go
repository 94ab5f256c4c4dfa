package cleanup

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/events"

	"github.com/kvap/kvap/api/v1alpha1"
)

// managedBy is the label that has Manager.
const managedBy = "app.kubernetes.io/managed-by"

// translationStore is a StatusStore of PolicyTranslations.
type translationStore struct{ dynamic dynamic.Interface }

func (e *translationStore) resource() dynamic.NamespaceableResourceInterface {
	return e.dynamic.Resource(v1alpha1.GroupVersion().WithResource("policytranslations"))
}

// List implements StatusStore.
func (e *translationStore) List(ctx context.Context) (map[string]*v1alpha1.PolicyTranslation, error) {
	list, err := e.resource().List(ctx, metav1.ListOptions{LabelSelector: managedBy + "=" + Manager, ResourceVersion: "0"})
	if err != nil {
		return nil, err
	}
	out := map[string]*v1alpha1.PolicyTranslation{}
	for i := range list.Items {
		t := &v1alpha1.PolicyTranslation{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(list.Items[i].Object, t); err != nil {
			return nil, err
		}
		out[t.Name] = t
	}
	return out, nil
}

// Write implements StatusStore.
func (e *translationStore) Write(ctx context.Context, t *v1alpha1.PolicyTranslation) error {
	source, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&t.Spec)
	if err != nil {
		return err
	}
	head := map[string]any{
		"apiVersion": v1alpha1.GroupVersion().String(), "kind": "PolicyTranslation",
		"metadata": map[string]any{"name": t.Name, "labels": map[string]any{managedBy: Manager}},
	}
	status := runtime.DeepCopyJSON(head)
	head["spec"] = source
	how := metav1.ApplyOptions{FieldManager: Manager, Force: true}
	applied, err := e.resource().Apply(ctx, t.Name, &unstructured.Unstructured{Object: head}, how)
	if err != nil {
		return err
	}
	t.Status.Observe(applied.GetGeneration())
	if status["status"], err = runtime.DefaultUnstructuredConverter.ToUnstructured(&t.Status); err != nil {
		return err
	}
	_, err = e.resource().ApplyStatus(ctx, t.Name, &unstructured.Unstructured{Object: status}, how)
	return err
}

// Remove implements StatusStore.
func (e *translationStore) Remove(ctx context.Context, name string) error {
	return e.resource().Delete(ctx, name, metav1.DeleteOptions{})
}

// longestNote is how many bytes a note of an event has at most.
const longestNote = 1000

// recorder makes events about policies until the context ends.
func recorder(ctx context.Context, client kubernetes.Interface) (Events, error) {
	b := events.NewBroadcaster(&events.EventSinkImpl{Interface: client.EventsV1()})
	if err := b.StartRecordingToSinkWithContext(ctx); err != nil {
		return nil, err
	}
	context.AfterFunc(ctx, b.Shutdown)
	r := b.NewRecorder(runtime.NewScheme(), Manager)
	return func(ref v1alpha1.PolicyReference, warning bool, reason, note string) {
		about := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: ref.Namespace, Name: ref.Name, UID: ref.UID}}
		about.SetGroupVersionKind(schema.GroupVersionKind{Group: ref.Group, Version: "v2", Kind: ref.Kind})
		kind := corev1.EventTypeNormal
		if warning {
			kind = corev1.EventTypeWarning
		}
		r.Eventf(about, nil, kind, reason, "CleanUp", "%s", cut(note, longestNote))
	}, nil
}
