package cluster

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/kvap/kvap/api/v1alpha1"
	"github.com/kvap/kvap/internal/input"
)

// SourceOf is the object as a file would have it, without what the cluster keeps of it.
func SourceOf(u unstructured.Unstructured) (input.Source, error) {
	name := u.GetKind() + "/" + u.GetName()
	if u.GetNamespace() != "" {
		name = u.GetKind() + "/" + u.GetNamespace() + "/" + u.GetName()
	}
	if u.GroupVersionKind().Group == v1alpha1.Group { // the kinds have the spec of those of Kyverno
		u.SetAPIVersion(v1alpha1.KyvernoAPIVersion(u.GetKind()))
	}
	for _, field := range []string{"managedFields", "uid", "resourceVersion", "generation", "creationTimestamp", "selfLink", "ownerReferences"} {
		unstructured.RemoveNestedField(u.Object, "metadata", field)
	}
	unstructured.RemoveNestedField(u.Object, "metadata", "annotations", "kubectl.kubernetes.io/last-applied-configuration")
	unstructured.RemoveNestedField(u.Object, "status")
	data, err := yaml.Marshal(u.Object)
	return input.Source{Name: name, Below: name, Data: data, Found: true}, err
}
