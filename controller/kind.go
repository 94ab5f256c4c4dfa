package controller

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kvap/kvap/api/v1alpha1"
)

// A sourceKind is a kind of objects that the controller reads, where its definition
// is in the cluster.
type sourceKind struct {
	group, kind, plural string
	versions            []string // the one to watch first
	namespaced          bool
	exception           bool
}

// sourceKinds are all kinds of policies and exceptions, in the order in which their
// policies are compiled.
func sourceKinds() []sourceKind {
	return []sourceKind{
		{group: "kyverno.io", kind: "ClusterPolicy", plural: "clusterpolicies", versions: []string{"v1", "v2beta1"}},
		{group: "kyverno.io", kind: "Policy", plural: "policies", versions: []string{"v1", "v2beta1"}, namespaced: true},
		{group: "policies.kyverno.io", kind: "ValidatingPolicy", plural: "validatingpolicies", versions: []string{"v1", "v1beta1", "v1alpha1"}},
		{group: "policies.kyverno.io", kind: "NamespacedValidatingPolicy", plural: "namespacedvalidatingpolicies", versions: []string{"v1", "v1beta1", "v1alpha1"}, namespaced: true},
		{group: "policies.kyverno.io", kind: "MutatingPolicy", plural: "mutatingpolicies", versions: []string{"v1", "v1beta1", "v1alpha1"}},
		{group: "policies.kyverno.io", kind: "NamespacedMutatingPolicy", plural: "namespacedmutatingpolicies", versions: []string{"v1", "v1beta1", "v1alpha1"}, namespaced: true},
		{group: "policies.kyverno.io", kind: "GeneratingPolicy", plural: "generatingpolicies", versions: []string{"v1", "v1beta1", "v1alpha1"}},
		{group: "policies.kyverno.io", kind: "NamespacedGeneratingPolicy", plural: "namespacedgeneratingpolicies", versions: []string{"v1", "v1beta1", "v1alpha1"}, namespaced: true},
		{group: "policies.kyverno.io", kind: "ImageValidatingPolicy", plural: "imagevalidatingpolicies", versions: []string{"v1", "v1beta1", "v1alpha1"}},
		{group: "policies.kyverno.io", kind: "NamespacedImageValidatingPolicy", plural: "namespacedimagevalidatingpolicies", versions: []string{"v1", "v1beta1", "v1alpha1"}, namespaced: true},
		{group: v1alpha1.Group, kind: "ClusterPolicy", plural: "clusterpolicies", versions: []string{v1alpha1.Version}},
		{group: v1alpha1.Group, kind: "Policy", plural: "policies", versions: []string{v1alpha1.Version}, namespaced: true},
		{group: v1alpha1.Group, kind: "ValidatingPolicy", plural: "validatingpolicies", versions: []string{v1alpha1.Version}},
		{group: v1alpha1.Group, kind: "NamespacedValidatingPolicy", plural: "namespacedvalidatingpolicies", versions: []string{v1alpha1.Version}, namespaced: true},
		{group: "kyverno.io", kind: "PolicyException", plural: "policyexceptions", versions: []string{"v2", "v2beta1"}, namespaced: true, exception: true},
		{group: "policies.kyverno.io", kind: "PolicyException", plural: "policyexceptions", versions: []string{"v1", "v1beta1", "v1alpha1"}, namespaced: true, exception: true},
	}
}

// definition is the name of the kind's CustomResourceDefinition.
func (k sourceKind) definition() string { return k.plural + "." + k.group }

func (k sourceKind) at(version string) schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: k.group, Version: version, Kind: k.kind}
}

// translationName is the name of the PolicyTranslation of a policy. Namespaces have
// no dots, and the plural tells kinds with and without namespaces apart, so no two
// policies share one.
func translationName(r v1alpha1.PolicyReference) string {
	plural := strings.ToLower(r.Kind)
	for _, k := range sourceKinds() {
		if k.group == r.Group && k.kind == r.Kind {
			plural = k.plural
		}
	}
	parts := []string{r.Name, plural, r.Group}
	if r.Namespace != "" {
		parts = []string{r.Name, r.Namespace, plural, r.Group}
	}
	return shortName(strings.Join(parts, "."))
}

// TranslationName is the name of the PolicyTranslation of a policy, and of its
// Migration.
func TranslationName(r v1alpha1.PolicyReference) string { return translationName(r) }

// A ForeignKind is a kind that the controller reads and that is not kvap's own.
type ForeignKind struct {
	schema.GroupVersionKind
	// Older are the versions that are read beside.
	Older      []string
	Plural     string
	Namespaced bool
}

// ForeignKinds are all kinds of Kyverno that the controller reads.
func ForeignKinds() []ForeignKind {
	var out []ForeignKind
	for _, k := range sourceKinds() {
		if k.group != v1alpha1.Group {
			out = append(out, ForeignKind{k.at(k.versions[0]), k.versions[1:], k.plural, k.namespaced})
		}
	}
	return out
}

// Reads tells whether the controller reads objects of a kind.
func Reads(gvk schema.GroupVersionKind) bool {
	return slices.ContainsFunc(sourceKinds(), func(k sourceKind) bool {
		return k.group == gvk.Group && k.kind == gvk.Kind && slices.Contains(k.versions, gvk.Version)
	})
}
