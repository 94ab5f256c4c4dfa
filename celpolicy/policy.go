package celpolicy

import (
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// group is the API group of Kyverno's kinds in CEL.
const group = "policies.kyverno.io"

// An Object is a policy of one of these kinds, with its fields in the order of the API.
type Object struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              Spec `json:"spec"`

	// mayErr tells that an entry of generate may be an error, behind which no other is evaluated.
	mayErr bool
}

// A Spec is what a ValidatingPolicy, a MutatingPolicy, a GeneratingPolicy or a DeletingPolicy
// says. What is left out has Kyverno's default.
type Spec struct {
	Schedule         string                                   `json:"schedule,omitempty"`
	MatchConstraints *admissionregistrationv1.MatchResources  `json:"matchConstraints"`
	MatchConditions  []admissionregistrationv1.MatchCondition `json:"matchConditions,omitempty"`
	Variables        []admissionregistrationv1.Variable       `json:"variables,omitempty"`
	Conditions       []admissionregistrationv1.MatchCondition `json:"conditions,omitempty"`
	Propagation      string                                   `json:"deletionPropagationPolicy,omitempty"`
	Validations      []Validation                             `json:"validations,omitempty"`

	TargetConstraints *TargetConstraints                       `json:"targetMatchConstraints,omitempty"`
	TargetConditions  []admissionregistrationv1.MatchCondition `json:"targetMatchConditions,omitempty"`

	Mutations []admissionregistrationv1.Mutation `json:"mutations,omitempty"`
	Generate  []Generation                       `json:"generate,omitempty"`

	AuditAnnotations  []admissionregistrationv1.AuditAnnotation  `json:"auditAnnotations,omitempty"`
	ValidationActions []admissionregistrationv1.ValidationAction `json:"validationActions,omitempty"`
	FailurePolicy     string                                     `json:"failurePolicy,omitempty"`
	Webhook           *WebhookConfiguration                      `json:"webhookConfiguration,omitempty"`
	Evaluation        *Evaluation                                `json:"evaluation,omitempty"`
	ServerSideApply   bool                                       `json:"useServerSideApply,omitempty"`
	Autogen           *Autogen                                   `json:"autogen,omitempty"`
}

// A Validation is one check. Kyverno uses no reason.
type Validation struct {
	Expression        string `json:"expression"`
	Message           string `json:"message,omitempty"`
	MessageExpression string `json:"messageExpression,omitempty"`
}

// TargetConstraints say which existing objects are changed: those that an expression of the trigger
// gives.
type TargetConstraints struct {
	// ResourceRules name a subresource that is written, and nothing else.
	ResourceRules []admissionregistrationv1.NamedRuleWithOperations `json:"resourceRules,omitempty"`
	Expression    string                                            `json:"expression"`
}

// A Generation is an entry of generate, an expression that calls the generator.
type Generation struct {
	Expression string `json:"expression"`
}

// A WebhookConfiguration says how long the API server waits for Kyverno.
type WebhookConfiguration struct {
	TimeoutSeconds int64 `json:"timeoutSeconds"`
}

// An Evaluation says when a policy is evaluated; nil is Kyverno's default.
type Evaluation struct {
	Admission        *Switch `json:"admission,omitempty"`
	Background       *Switch `json:"background,omitempty"`
	MutateExisting   *Switch `json:"mutateExisting,omitempty"`
	GenerateExisting *Switch `json:"generateExisting,omitempty"`
	Synchronize      *Switch `json:"synchronize,omitempty"`
	Orphans          *Switch `json:"orphanDownstreamOnPolicyDelete,omitempty"`
	// SkipBackgroundRequests is true where it is nil.
	SkipBackgroundRequests *bool `json:"skipBackgroundRequests,omitempty"`
}

// A Switch turns something on or off.
type Switch struct {
	Enabled bool `json:"enabled"`
}

// An Autogen says which controllers of Pods a policy about Pods is for, too.
type Autogen struct {
	PodControllers PodControllers `json:"podControllers"`
}

// PodControllers are resources; an empty list is none, where no list is all.
type PodControllers struct {
	Controllers []string `json:"controllers"`
}
