package cluster

import (
	"context"
	"encoding/json"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kvap/kvap/api/v1alpha1"
	"github.com/kvap/kvap/schema"
)

// EachOf calls visit for each object of a kind that is served: its group, the kind,
// and the versions. What may not be read is left out.
func (c *Connection) EachOf(ctx context.Context, kind []string, leave func(error), visit func(unstructured.Unstructured) error) error {
	resource, ok := c.Serves(kind[0], kind[1], kind[2:]...)
	if !ok {
		return nil
	}
	items, _, err := c.List(ctx, resource)
	if apierrors.IsForbidden(err) || apierrors.IsNotFound(err) {
		leave(err)
		return nil
	}
	if err != nil {
		return err
	}
	for _, u := range items {
		if err := visit(u); err != nil {
			return err
		}
	}
	return nil
}

// DefinedTypes adds the types of the kinds that the cluster defines.
func (c *Connection) DefinedTypes(ctx context.Context, known *schema.Set, leave func(error)) (*schema.Set, error) {
	err := c.EachOf(ctx, []string{"apiextensions.k8s.io", "CustomResourceDefinition", "v1"}, leave, func(u unstructured.Unstructured) error {
		u.SetManagedFields(nil)
		data, err := json.Marshal(u.Object)
		if err != nil {
			return err
		}
		if next, found := known.WithCRDFile(u.GetName(), data); !found.HasErrors() {
			known = next
		}
		return nil
	})
	return known, err
}

// SourceKinds are the kinds that kvap reads, each with its versions, the preferred
// one first.
func SourceKinds() [][]string {
	return [][]string{
		{"kyverno.io", "ClusterPolicy", "v1", "v2beta1"},
		{"kyverno.io", "Policy", "v1", "v2beta1"},
		{"kyverno.io", "PolicyException", "v2", "v2beta1"},
		{"policies.kyverno.io", "PolicyException", "v1", "v1beta1", "v1alpha1"},
		{"policies.kyverno.io", "ValidatingPolicy", "v1", "v1beta1", "v1alpha1"},
		{"policies.kyverno.io", "NamespacedValidatingPolicy", "v1", "v1beta1", "v1alpha1"},
		{"policies.kyverno.io", "MutatingPolicy", "v1", "v1beta1", "v1alpha1"},
		{"policies.kyverno.io", "NamespacedMutatingPolicy", "v1", "v1beta1", "v1alpha1"},
		{"policies.kyverno.io", "GeneratingPolicy", "v1", "v1beta1", "v1alpha1"},
		{"policies.kyverno.io", "NamespacedGeneratingPolicy", "v1", "v1beta1", "v1alpha1"},
		{"policies.kyverno.io", "ImageValidatingPolicy", "v1", "v1beta1", "v1alpha1"},
		{"policies.kyverno.io", "NamespacedImageValidatingPolicy", "v1", "v1beta1", "v1alpha1"},
		{v1alpha1.Group, "ClusterPolicy", "v1alpha1"},
		{v1alpha1.Group, "Policy", "v1alpha1"},
		{v1alpha1.Group, "ValidatingPolicy", "v1alpha1"},
		{v1alpha1.Group, "NamespacedValidatingPolicy", "v1alpha1"},
		{v1alpha1.Group, "PolicyTranslation", "v1alpha1"},
	}
}

// Title is what a message calls an object.
func Title(o *unstructured.Unstructured) string {
	name := o.GetName()
	if ns := o.GetNamespace(); ns != "" {
		name = ns + "/" + name
	}
	return o.GetKind() + "/" + name
}
