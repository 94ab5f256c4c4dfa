package cleanup

import (
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// celGroup is that of policies in CEL.
const celGroup = "policies.kyverno.io"

// A PolicyKind is a kind of cleanup policies.
type PolicyKind struct {
	schema.GroupVersionKind
	// Older are the versions that are read where the cluster does not serve this one.
	Older      []string
	Plural     string
	Namespaced bool
}

// Kinds are all kinds of cleanup policies.
func Kinds() []PolicyKind {
	gv, older := schema.GroupVersion{Group: "kyverno.io", Version: "v2"}, []string{"v2beta1", "v2alpha1"}
	inCEL := schema.GroupVersion{Group: celGroup, Version: "v1"}
	return []PolicyKind{
		{gv.WithKind("ClusterCleanupPolicy"), older, "clustercleanuppolicies", false},
		{gv.WithKind("CleanupPolicy"), older, "cleanuppolicies", true},
		{inCEL.WithKind("DeletingPolicy"), []string{"v1beta1", "v1alpha1"}, "deletingpolicies", false},
		{inCEL.WithKind("NamespacedDeletingPolicy"), []string{"v1beta1"}, "namespaceddeletingpolicies", true},
	}
}

// Reads tells whether objects of a kind are cleanup policies.
func Reads(gvk schema.GroupVersionKind) bool {
	return slices.ContainsFunc(Kinds(), func(k PolicyKind) bool {
		return k.Group == gvk.Group && k.Kind == gvk.Kind && (k.Version == gvk.Version || slices.Contains(k.Older, gvk.Version))
	})
}
