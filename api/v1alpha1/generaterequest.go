package v1alpha1

import (
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
)

// GenerateRequest is work that a request has triggered: objects to generate, or
// objects to change that exist. It is made before the request is answered and goes
// when the work is done, so that nothing is lost when the process ends in between.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Namespaced,shortName=genreq,categories=kvap
// +kubebuilder:printcolumn:name="TYPE",type=string,JSONPath=`.spec.type`
// +kubebuilder:printcolumn:name="POLICY",type=string,JSONPath=`.spec.policy.name`
// +kubebuilder:printcolumn:name="RULE",type=string,JSONPath=`.spec.rule`
// +kubebuilder:printcolumn:name="STATE",type=string,JSONPath=`.status.state`
// +kubebuilder:printcolumn:name="RETRIES",type=integer,JSONPath=`.status.retryCount`
// +kubebuilder:printcolumn:name="AGE",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="MESSAGE",type=string,priority=1,JSONPath=`.status.message`
type GenerateRequest struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +required
	Spec GenerateRequestSpec `json:"spec"`
	// +optional
	Status GenerateRequestStatus `json:"status,omitempty"`
}

// GenerateRequestList is a list of GenerateRequests.
//
// +kubebuilder:object:root=true
type GenerateRequestList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []GenerateRequest `json:"items"`
}

// GenerateRequestType is what a GenerateRequest is for.
//
// +kubebuilder:validation:Enum=Generate;MutateExisting
type GenerateRequestType string

// The types.
const (
	GenerateObjects GenerateRequestType = "Generate"
	MutateExisting  GenerateRequestType = "MutateExisting"
)

// GenerateRequestSpec says what is to be done, and what triggered it.
//
// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="a request does not change"
type GenerateRequestSpec struct {
	// +required
	Type GenerateRequestType `json:"type"`
	// +required
	Policy PolicyReference `json:"policy"`
	// Rule is the name as written.
	// +required
	Rule string `json:"rule"`
	// Trigger is the object that the request was about.
	// +required
	Trigger ObjectReference `json:"trigger"`
	// Delete tells that what the rule has generated for the trigger is to go.
	Delete bool `json:"delete,omitempty"`
	// Kinds are those of the objects to remove where the rule, or its policy, is gone,
	// which is the trigger then.
	// +listType=atomic
	Kinds []KindReference `json:"kinds,omitempty"`
	// Request is what is known of the request; there is none where the trigger was
	// there before the policy.
	Request *CapturedRequest `json:"request,omitempty"`
}

// KindReference names a kind.
type KindReference struct {
	// +required
	APIVersion string `json:"apiVersion"`
	// +required
	Kind string `json:"kind"`
}

// ObjectReference points at an object.
type ObjectReference struct {
	// +required
	APIVersion string `json:"apiVersion"`
	// +required
	Kind      string    `json:"kind"`
	Namespace string    `json:"namespace,omitempty"`
	Name      string    `json:"name,omitempty"`
	UID       types.UID `json:"uid,omitempty"`
}

// CapturedRequest is an admission request, as far as rules read it.
type CapturedRequest struct {
	UID types.UID `json:"uid,omitempty"`
	// +kubebuilder:validation:Enum=CREATE;UPDATE;DELETE;CONNECT
	Operation       string                       `json:"operation,omitempty"`
	Kind            *metav1.GroupVersionKind     `json:"kind,omitempty"`
	Resource        *metav1.GroupVersionResource `json:"resource,omitempty"`
	SubResource     string                       `json:"subResource,omitempty"`
	RequestKind     *metav1.GroupVersionKind     `json:"requestKind,omitempty"`
	RequestResource *metav1.GroupVersionResource `json:"requestResource,omitempty"`
	Name            string                       `json:"name,omitempty"`
	Namespace       string                       `json:"namespace,omitempty"`
	UserInfo        authenticationv1.UserInfo    `json:"userInfo,omitempty"`
	// Roles and ClusterRoles are those bound to the user when the request came.
	// +listType=atomic
	Roles []string `json:"roles,omitempty"`
	// +listType=atomic
	ClusterRoles []string `json:"clusterRoles,omitempty"`
	// Created is the creationTimestamp of an object that was created: what is stored is
	// held to it.
	Created string `json:"created,omitempty"`
	// Unchanged tells of an update that leaves the object as it is, so that nothing is
	// stored.
	Unchanged bool `json:"unchanged,omitempty"`
	// Object and OldObject are as the request had them, but for a Secret, whose data
	// is not kept.
	// +kubebuilder:pruning:PreserveUnknownFields
	Object *runtime.RawExtension `json:"object,omitempty"`
	// +kubebuilder:pruning:PreserveUnknownFields
	OldObject *runtime.RawExtension `json:"oldObject,omitempty"`
	// +kubebuilder:pruning:PreserveUnknownFields
	Options *runtime.RawExtension `json:"options,omitempty"`
}

// GenerateRequestState is how far a GenerateRequest is; one without a state has
// not been looked at.
//
// +kubebuilder:validation:Enum=Pending;Failed;Completed;Skipped
type GenerateRequestState string

// The states.
const (
	GeneratePending   GenerateRequestState = "Pending"
	GenerateFailed    GenerateRequestState = "Failed"
	GenerateCompleted GenerateRequestState = "Completed"
	GenerateSkipped   GenerateRequestState = "Skipped"
)

// GenerateRequestStatus is how far the work is.
type GenerateRequestStatus struct {
	State      GenerateRequestState `json:"state,omitempty"`
	Message    string               `json:"message,omitempty"`
	RetryCount int32                `json:"retryCount,omitempty"`
	// NextRetry is when the work is tried again after a failure.
	NextRetry *metav1.Time `json:"nextRetry,omitempty"`
	// Resources are what was generated or changed.
	// +listType=atomic
	Resources []ObjectReference `json:"resources,omitempty"`
}
