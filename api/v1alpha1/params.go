package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Params is what a policy reads. It takes the place of the ConfigMap of the same
// name and namespace, and holds the same data.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Namespaced,path=params,singular=params,shortName=kparams,categories=kvap
// +kubebuilder:printcolumn:name="AGE",type=date,JSONPath=`.metadata.creationTimestamp`
type Params struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Data is as in a ConfigMap, a text for each key.
	Data map[string]string `json:"data,omitempty"`
}

// ParamsList is a list of Params.
//
// +kubebuilder:object:root=true
type ParamsList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Params `json:"items"`
}
