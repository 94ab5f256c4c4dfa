package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Group and Version are those of the kinds in this package.
const (
	Group   = "kvap.dev"
	Version = "v1alpha1"
)

// GroupVersion is the group and version as one value.
func GroupVersion() schema.GroupVersion { return schema.GroupVersion{Group: Group, Version: Version} }

// AddToScheme makes the kinds known to a scheme.
func AddToScheme(s *runtime.Scheme) error {
	s.AddKnownTypes(GroupVersion(),
		&ClusterPolicy{}, &ClusterPolicyList{},
		&Policy{}, &PolicyList{},
		&ValidatingPolicy{}, &ValidatingPolicyList{},
		&NamespacedValidatingPolicy{}, &NamespacedValidatingPolicyList{},
		&PolicyTranslation{}, &PolicyTranslationList{},
		&Params{}, &ParamsList{},
		&GenerateRequest{}, &GenerateRequestList{},
		&Migration{}, &MigrationList{},
	)
	metav1.AddToGroupVersion(s, GroupVersion())
	return nil
}
