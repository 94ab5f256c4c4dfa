package controller

import (
	"context"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kvap/kvap/api/v1alpha1"
)

// tellReady has a policy of kvap.dev say in its status whether it is ready, as its
// PolicyTranslation does, or that this is about another version. Nothing else of it is written.
func (m *editMarker) tellReady(ctx context.Context, t *v1alpha1.PolicyTranslation) error {
	ref := t.Spec.Source
	ready := meta.FindStatusCondition(t.Status.Conditions, v1alpha1.ConditionReady)
	if ref.Group != v1alpha1.Group || ready == nil {
		return nil
	}
	o := unstructuredOf(v1alpha1.GroupVersion().WithKind(ref.Kind))
	if err := m.client.Get(ctx, client.ObjectKey{Namespace: ref.Namespace, Name: ref.Name}, o); err != nil {
		return err
	}
	want := *ready
	if versionOf(o) != (sourceVersion{ref.UID, t.Status.SourceDigest}) {
		want = isEdited()
	}
	want.ObservedGeneration = o.GetGeneration()
	have := readinessOf(o)
	if !meta.SetStatusCondition(&have.Conditions, want) {
		return nil
	}
	patch := map[string]any{"metadata": map[string]any{"resourceVersion": o.GetResourceVersion()}, "status": have}
	m.tell("status")
	return m.client.Status().Patch(ctx, o, client.RawPatch(types.MergePatchType, []byte(asJSON(patch))), client.FieldOwner(Manager))
}

// readinessOf is what a policy says of itself, as far as that can be read.
func readinessOf(o *unstructured.Unstructured) (out v1alpha1.Readiness) {
	status, _ := o.Object["status"].(map[string]any)
	if runtime.DefaultUnstructuredConverter.FromUnstructured(status, &out) != nil {
		return v1alpha1.Readiness{Conditions: []metav1.Condition{}}
	}
	return out
}
