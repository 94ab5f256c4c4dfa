package v1alpha1

import (
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// ClusterPolicy is a policy for the whole cluster, with the spec of Kyverno's
// ClusterPolicy. The outcome is in the PolicyTranslation of the policy.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,shortName=kcpol,categories=kvap
// +kubebuilder:printcolumn:name="READY",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="ACTION",type=string,JSONPath=`.spec.validationFailureAction`
// +kubebuilder:printcolumn:name="MODE",type=string,JSONPath=`.metadata.annotations.kvap\.dev/mode`
// +kubebuilder:printcolumn:name="AGE",type=date,JSONPath=`.metadata.creationTimestamp`
type ClusterPolicy struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +required
	Spec PolicySpec `json:"spec"`
	// +optional
	Status Readiness `json:"status,omitzero"`
}

// ClusterPolicyList is a list of ClusterPolicies.
//
// +kubebuilder:object:root=true
type ClusterPolicyList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ClusterPolicy `json:"items"`
}

// Policy is a policy for its own namespace, with the spec of Kyverno's Policy. The
// outcome is in the PolicyTranslation of the policy.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Namespaced,path=policies,shortName=kpol,categories=kvap
// +kubebuilder:printcolumn:name="READY",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="ACTION",type=string,JSONPath=`.spec.validationFailureAction`
// +kubebuilder:printcolumn:name="MODE",type=string,JSONPath=`.metadata.annotations.kvap\.dev/mode`
// +kubebuilder:printcolumn:name="AGE",type=date,JSONPath=`.metadata.creationTimestamp`
type Policy struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +required
	Spec PolicySpec `json:"spec"`
	// +optional
	Status Readiness `json:"status,omitzero"`
}

// PolicyList is a list of Policies.
//
// +kubebuilder:object:root=true
type PolicyList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Policy `json:"items"`
}

// ValidatingPolicy is a policy in CEL for the whole cluster, with the spec of Kyverno's
// ValidatingPolicy. The outcome is in the PolicyTranslation of the policy.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,path=validatingpolicies,shortName=kvpol,categories=kvap
// +kubebuilder:printcolumn:name="READY",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="ACTIONS",type=string,JSONPath=`.spec.validationActions`
// +kubebuilder:printcolumn:name="MODE",type=string,JSONPath=`.metadata.annotations.kvap\.dev/mode`
// +kubebuilder:printcolumn:name="AGE",type=date,JSONPath=`.metadata.creationTimestamp`
type ValidatingPolicy struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is checked when the policy is compiled.
	// +required
	Spec Open `json:"spec"`
	// +optional
	Status Readiness `json:"status,omitzero"`
}

// ValidatingPolicyList is a list of ValidatingPolicies.
//
// +kubebuilder:object:root=true
type ValidatingPolicyList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ValidatingPolicy `json:"items"`
}

// NamespacedValidatingPolicy is a policy in CEL for its own namespace, with the spec of
// Kyverno's NamespacedValidatingPolicy. The outcome is in the PolicyTranslation of the policy.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Namespaced,path=namespacedvalidatingpolicies,shortName=knvpol,categories=kvap
// +kubebuilder:printcolumn:name="READY",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="ACTIONS",type=string,JSONPath=`.spec.validationActions`
// +kubebuilder:printcolumn:name="MODE",type=string,JSONPath=`.metadata.annotations.kvap\.dev/mode`
// +kubebuilder:printcolumn:name="AGE",type=date,JSONPath=`.metadata.creationTimestamp`
type NamespacedValidatingPolicy struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is checked when the policy is compiled.
	// +required
	Spec Open `json:"spec"`
	// +optional
	Status Readiness `json:"status,omitzero"`
}

// NamespacedValidatingPolicyList is a list of NamespacedValidatingPolicies.
//
// +kubebuilder:object:root=true
type NamespacedValidatingPolicyList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []NamespacedValidatingPolicy `json:"items"`
}

// Readiness is what a policy says itself of how it is. All else is in its PolicyTranslation.
type Readiness struct {
	// Conditions are Ready, as the PolicyTranslation has it, with the generation of the policy
	// that it is about.
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// KyvernoAPIVersion is that of the kind of Kyverno whose spec a kind of kvap.dev has.
func KyvernoAPIVersion(kind string) string {
	switch kind {
	case "ValidatingPolicy", "NamespacedValidatingPolicy":
		return "policies.kyverno.io/v1"
	}
	return "kyverno.io/v1"
}

// PolicySpec is the spec of Kyverno's ClusterPolicy and Policy. What is below the
// fields of a rule is checked when the policy is compiled.
type PolicySpec struct {
	// Rules are judged in order.
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=256
	Rules []Rule `json:"rules,omitempty"`

	// ApplyRules says whether all rules that match are applied, or only the first.
	// +kubebuilder:validation:Enum=All;One
	ApplyRules string `json:"applyRules,omitempty"`
	// FailurePolicy is what happens to a request on which a rule errs.
	// +kubebuilder:validation:Enum=Ignore;Fail
	FailurePolicy string `json:"failurePolicy,omitempty"`
	// ValidationFailureAction is what follows from a violation, for rules that name
	// no action of their own.
	// +kubebuilder:validation:Enum=audit;enforce;Audit;Enforce
	ValidationFailureAction string `json:"validationFailureAction,omitempty"`
	// ValidationFailureActionOverrides are the actions for some namespaces.
	// +listType=atomic
	ValidationFailureActionOverrides []ActionOverride `json:"validationFailureActionOverrides,omitempty"`
	// EmitWarning has violations under Audit told to the one who asks.
	EmitWarning *bool `json:"emitWarning,omitempty"`
	// Admission says whether requests are judged.
	Admission *bool `json:"admission,omitempty"`
	// Background says whether objects that exist are scanned.
	Background *bool `json:"background,omitempty"`

	SchemaValidation               *bool `json:"schemaValidation,omitempty"`
	UseServerSideApply             *bool `json:"useServerSideApply,omitempty"`
	MutateExistingOnPolicyUpdate   *bool `json:"mutateExistingOnPolicyUpdate,omitempty"`
	GenerateExisting               *bool `json:"generateExisting,omitempty"`
	GenerateExistingOnPolicyUpdate *bool `json:"generateExistingOnPolicyUpdate,omitempty"`

	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=30
	WebhookTimeoutSeconds *int32 `json:"webhookTimeoutSeconds,omitempty"`
	// WebhookConfiguration is about the requests that the policy is asked about.
	WebhookConfiguration *WebhookConfiguration `json:"webhookConfiguration,omitempty"`
}

// ActionOverride is an action for some namespaces.
type ActionOverride struct {
	// +kubebuilder:validation:Enum=audit;enforce;Audit;Enforce
	Action string `json:"action,omitempty"`
	// Namespaces may have wildcards.
	// +listType=atomic
	Namespaces        []string              `json:"namespaces,omitempty"`
	NamespaceSelector *metav1.LabelSelector `json:"namespaceSelector,omitempty"`
}

// WebhookConfiguration is about the requests that a policy is asked about.
type WebhookConfiguration struct {
	// +kubebuilder:validation:Enum=Ignore;Fail
	FailurePolicy string `json:"failurePolicy,omitempty"`
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=30
	TimeoutSeconds *int32 `json:"timeoutSeconds,omitempty"`
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	MatchConditions []admissionregistrationv1.MatchCondition `json:"matchConditions,omitempty"`
}

// Rule is one rule of a policy.
//
// +kubebuilder:validation:XValidation:rule="[has(self.validate), has(self.mutate), has(self.generate), has(self.verifyImages)].filter(x, x).size() == 1",message="a rule has one of validate, mutate, generate and verifyImages"
type Rule struct {
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name"`
	// Match says which requests the rule is about.
	// +required
	// +kubebuilder:pruning:PreserveUnknownFields
	Match runtime.RawExtension `json:"match"`
	// +kubebuilder:pruning:PreserveUnknownFields
	Exclude *runtime.RawExtension `json:"exclude,omitempty"`
	// +listType=atomic
	Context []Open `json:"context,omitempty"`
	// Preconditions are a map of any and all, or a list.
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:pruning:PreserveUnknownFields
	Preconditions *runtime.RawExtension `json:"preconditions,omitempty"`
	// +listType=atomic
	CELPreconditions []admissionregistrationv1.MatchCondition `json:"celPreconditions,omitempty"`
	// +kubebuilder:pruning:PreserveUnknownFields
	ImageExtractors *runtime.RawExtension `json:"imageExtractors,omitempty"`
	// +kubebuilder:pruning:PreserveUnknownFields
	Validate *runtime.RawExtension `json:"validate,omitempty"`
	// +kubebuilder:pruning:PreserveUnknownFields
	Mutate *runtime.RawExtension `json:"mutate,omitempty"`
	// +kubebuilder:pruning:PreserveUnknownFields
	Generate *runtime.RawExtension `json:"generate,omitempty"`
	// +listType=atomic
	VerifyImages []Open `json:"verifyImages,omitempty"`

	SkipBackgroundRequests *bool             `json:"skipBackgroundRequests,omitempty"`
	ReportProperties       map[string]string `json:"reportProperties,omitempty"`
}

// Open is a map of which the definition says nothing.
//
// +kubebuilder:pruning:PreserveUnknownFields
// +kubebuilder:validation:Type=object
type Open struct {
	runtime.RawExtension `json:",inline"`
}
