package cleanup

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"github.com/kvap/kvap/api/v1alpha1"
	"github.com/kvap/kvap/controller/internal/notice"
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

// recorder makes events about policies until the context ends.
func recorder(ctx context.Context, client kubernetes.Interface) (Events, error) {
	r, err := notice.New(ctx, client, Manager)
	return func(ref v1alpha1.PolicyReference, warning bool, reason, note string) {
		r.Tell(notice.OfPolicy(ref, "v2"), corev1.ObjectReference{}, warning, reason, "CleanUp", note)
	}, err
}
