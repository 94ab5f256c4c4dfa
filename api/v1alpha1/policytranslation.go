package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// PolicyTranslation says what became of one source policy. kvap writes it; nobody
// else needs to.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,shortName=ptrans,categories=kvap
// +kubebuilder:printcolumn:name="READY",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="MODE",type=string,JSONPath=`.status.mode`
// +kubebuilder:printcolumn:name="NATIVE",type=integer,JSONPath=`.status.native`
// +kubebuilder:printcolumn:name="WEBHOOK",type=integer,JSONPath=`.status.webhook`
// +kubebuilder:printcolumn:name="UNSUPPORTED",type=integer,JSONPath=`.status.unsupported`
// +kubebuilder:printcolumn:name="ACTION",type=string,JSONPath=`.status.action`
// +kubebuilder:printcolumn:name="AGE",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="REASON",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Ready")].message`
type PolicyTranslation struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +required
	Spec PolicyTranslationSpec `json:"spec"`
	// Status is by default that of a policy that nobody has looked at.
	// +optional
	// +kubebuilder:default={native: 0, webhook: 0, unsupported: 0, conditions: {{type: "Ready", status: "Unknown", reason: "Pending", message: "the controller has not looked at the policy yet", lastTransitionTime: "1970-01-01T00:00:00Z"}}}
	Status PolicyTranslationStatus `json:"status,omitempty"`
}

// PolicyTranslationList is a list of PolicyTranslations.
//
// +kubebuilder:object:root=true
type PolicyTranslationList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []PolicyTranslation `json:"items"`
}

// PolicyTranslationSpec names the policy.
type PolicyTranslationSpec struct {
	// +required
	Source PolicyReference `json:"source"`
}

// PolicyReference points at a policy.
type PolicyReference struct {
	// Group is kyverno.io, policies.kyverno.io or kvap.dev.
	// +required
	Group string `json:"group"`
	// +required
	Kind string `json:"kind"`
	// Namespace is empty for a kind that is not namespaced.
	Namespace string `json:"namespace,omitempty"`
	// +required
	Name string    `json:"name"`
	UID  types.UID `json:"uid,omitempty"`
}

// The modes of a policy.
const (
	// ModeShadow has the policy judged natively with the action Audit: users notice
	// nothing of it.
	ModeShadow = "shadow"
	// ModeEnforce has kvap enforce the policy.
	ModeEnforce = "enforce"
	// ModeOff has kvap leave the policy alone.
	ModeOff = "off"

	// ModeKey is the annotation, or label, of a policy that says which it is.
	ModeKey = "kvap.dev/mode"
)

// PolicyTranslationStatus is what became of the policy.
type PolicyTranslationStatus struct {
	// ObservedGeneration is the generation of this object that the rest is about, as in the
	// conditions.
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// SourceGeneration is the generation of the policy that the rest is about.
	SourceGeneration int64 `json:"sourceGeneration,omitempty"`
	// SourceDigest is of that policy's spec, labels and annotations.
	SourceDigest string `json:"sourceDigest,omitempty"`
	// Mode is shadow, enforce or off.
	Mode string `json:"mode,omitempty"`
	// Action is what follows from a violation: Deny, Audit, Warn, or several with
	// commas between.
	Action string `json:"action,omitempty"`
	// Native, Webhook and Unsupported are how many rules are judged by the API
	// server, by the webhook and nowhere.
	Native      int32 `json:"native"`
	Webhook     int32 `json:"webhook"`
	Unsupported int32 `json:"unsupported"`
	// Conditions are Ready, and what it follows from: Compiled, KindsServed, Synced,
	// TypeChecked, ParamsResolved, Enforced and FallbackActive. Stalled is there only
	// where it is true.
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// Rules are the rules as written, in order.
	// +listType=atomic
	Rules []RuleStatus `json:"rules,omitempty"`
	// RulesLeftOut are how many rules have no row, because there are too many.
	RulesLeftOut int32 `json:"rulesLeftOut,omitempty"`
	// Exceptions are the PolicyExceptions from the policy that are in force, 50 at most.
	// +listType=atomic
	Exceptions []ActiveException `json:"exceptions,omitempty"`
	// IgnoredExceptions are PolicyExceptions that name the policy and do not count, ten
	// at most.
	// +listType=atomic
	IgnoredExceptions []IgnoredException `json:"ignoredExceptions,omitempty"`
	// LastGood is the last version of the policy that could be read. It stays in force
	// while a later one cannot be.
	LastGood *LastGood `json:"lastGood,omitempty"`
	// Cleanup is about a policy that deletes on a schedule, and has no rules.
	Cleanup *CleanupStatus `json:"cleanup,omitempty"`
	// Erring are the rules that the webhook errs on for each request, by each process that judges.
	// +listType=map
	// +listMapKey=by
	Erring []ErringRules `json:"erring,omitempty"`
	// Shadow is what the webhook said of real requests while the policy was in shadow, for
	// each process that judges. It is about rules without a native form.
	// +listType=map
	// +listMapKey=by
	Shadow []ShadowStatus `json:"shadow,omitempty"`
}

// ErringRules are what one process says of the rules that err, about a version of the policy.
type ErringRules struct {
	// By is the process.
	// +required
	By string `json:"by"`
	// Generation is of the source policy.
	// +required
	Generation int64 `json:"generation"`
	// Rules are ten at most.
	// +listType=atomic
	Rules []ErringRule `json:"rules,omitempty"`
}

// ErringRule is a rule that errs.
type ErringRule struct {
	// Rule is its name as Kyverno reports it.
	// +required
	Rule string `json:"rule"`
	// Message is one of the errors, but of no Secret.
	Message string `json:"message,omitempty"`
}

// Observe has the status, with its conditions, be about a generation of its PolicyTranslation.
func (s *PolicyTranslationStatus) Observe(generation int64) {
	s.ObservedGeneration = generation
	for i := range s.Conditions {
		s.Conditions[i].ObservedGeneration = generation
	}
}

// ShadowStatus is what one process said in shadow, about a version of the policy.
type ShadowStatus struct {
	// By is the process.
	// +required
	By string `json:"by"`
	// Generation is of the source policy.
	// +required
	Generation int64 `json:"generation"`
	// Since and Until are the times of the first request and the last.
	Since metav1.Time `json:"since,omitempty"`
	Until metav1.Time `json:"until,omitempty"`
	// Rules are those that were asked about a request, by name; 50 at most.
	// +listType=atomic
	Rules []ShadowRule `json:"rules,omitempty"`
}

// ShadowRule is what was said of one rule.
type ShadowRule struct {
	// Rule is its name as Kyverno reports it.
	// +required
	Rule string `json:"rule"`
	// Passed, Violated and Failed are in how many requests nothing was found, a
	// violation was, and the rule could not be judged.
	Passed   int64 `json:"passed"`
	Violated int64 `json:"violated"`
	Failed   int64 `json:"failed"`
	// Requests are the last few of each.
	// +listType=atomic
	Requests []ShadowRequest `json:"requests,omitempty"`
}

// ShadowRequest is a request that was judged in shadow.
type ShadowRequest struct {
	At        metav1.Time `json:"at,omitempty"`
	Operation string      `json:"operation,omitempty"`
	// Object is Kind/namespace/name.
	Object string    `json:"object,omitempty"`
	UID    types.UID `json:"uid,omitempty"`
	// Verdict is pass, fail or error.
	Verdict string `json:"verdict"`
	// Message is what the webhook would have said, but of no Secret.
	Message string `json:"message,omitempty"`
}

// CleanupStatus is how the last run of a cleanup policy went.
type CleanupStatus struct {
	// LastExecutionTime is when the policy ran last.
	LastExecutionTime *metav1.Time `json:"lastExecutionTime,omitempty"`
	// NextExecutionTime is when it is due.
	NextExecutionTime *metav1.Time `json:"nextExecutionTime,omitempty"`
	// Deleted is how many objects the last run has deleted, or, in shadow, would have.
	Deleted int32 `json:"deleted"`
	// Failed is how many objects could not be judged or deleted.
	Failed int32 `json:"failed"`
}

// ActiveException is a PolicyException that is in force.
type ActiveException struct {
	// +required
	Namespace string `json:"namespace"`
	// +required
	Name string `json:"name"`
	// Rules are those that it is from, with wildcards; empty for all that the policy says.
	// +listType=atomic
	Rules []string `json:"rules,omitempty"`
	// Expires is when it ceases to be in force, by kvap.dev/expires-at.
	Expires *metav1.Time `json:"expires,omitempty"`
}

// IgnoredException is a PolicyException that does not count.
type IgnoredException struct {
	// +required
	Namespace string `json:"namespace"`
	// +required
	Name string `json:"name"`
	// Reason is why it does not count.
	// +required
	Reason string `json:"reason"`
}

// LastGood is a version of a policy.
type LastGood struct {
	// +required
	Digest string `json:"digest"`
	// Policy is the policy as JSON.
	Policy string `json:"policy,omitempty"`
	// Packed is the same in gzip, where it is long. Of a policy that is too large even
	// so there is neither.
	Packed []byte `json:"packed,omitempty"`
}

// The conditions of a PolicyTranslation.
const (
	// ConditionReady tells that everything below is as it should be, for the policy as it is.
	ConditionReady = "Ready"
	// ConditionStalled tells that the policy is not ready, and will not be by waiting. Where
	// that is not so there is no such condition, as kstatus wants it.
	ConditionStalled = "Stalled"
	// ConditionCompiled tells that every rule has a target.
	ConditionCompiled = "Compiled"
	// ConditionKindsServed tells that each rule is about a kind that the cluster serves.
	ConditionKindsServed = "KindsServed"
	// ConditionSynced tells that the API server has the objects that were compiled.
	ConditionSynced = "Synced"
	// ConditionTypeChecked tells that the API server has nothing to say of the
	// expressions, but for known false alarms.
	ConditionTypeChecked = "TypeChecked"
	// ConditionParamsResolved tells that what the rules look up is there.
	ConditionParamsResolved = "ParamsResolved"
	// ConditionEnforced tells that every API server was seen to judge by the objects.
	ConditionEnforced = "Enforced"
	// ConditionFallbackActive tells that the webhook serves the rules without a
	// native form. It is True where there is no such rule.
	ConditionFallbackActive = "FallbackActive"
	// ConditionReported tells that the reports about objects that are there are up to
	// date. It is there where reports are asked for, and Ready does not follow from it.
	ConditionReported = "Reported"
)

// RuleStatus is what became of one rule as written.
type RuleStatus struct {
	// +required
	Rule string `json:"rule"`
	// Type is validate, mutate, generate or verifyImages.
	Type string `json:"type,omitempty"`
	// Target is native, webhook, scan (of policies with admission: false, where reports
	// are asked for) or unsupported.
	Target string `json:"target,omitempty"`
	// Codes are why the rule is not native, or what one must know of it; `kvap
	// explain` has the words.
	// +listType=atomic
	Codes []string `json:"codes,omitempty"`
	// Reason is why the rule is not native.
	Reason string `json:"reason,omitempty"`
	// Objects are the ValidatingAdmissionPolicies that judge by the rule, or, of a rule that
	// mutates, the MutatingAdmissionPolicies that change objects by it.
	// +listType=atomic
	Objects []string `json:"objects,omitempty"`
	// Action is what follows from a violation.
	Action string `json:"action,omitempty"`
	// CostPercent is the estimated cost of the dearest expression, as a share of what
	// the API server allows one.
	CostPercent int32 `json:"costPercent,omitempty"`
	// Warnings are what the API server's type checker says.
	// +listType=atomic
	Warnings []RuleWarning `json:"warnings,omitempty"`
}

// RuleWarning is what the API server's type checker says of an expression.
type RuleWarning struct {
	// Object is the ValidatingAdmissionPolicy.
	// +required
	Object string `json:"object"`
	// FieldRef is the expression in it.
	// +required
	FieldRef string `json:"fieldRef"`
	// +required
	Warning string `json:"warning"`
	// Known tells of a false alarm that Kubernetes is known for.
	Known bool `json:"known,omitempty"`
	// Rule is the name as Kyverno reports it.
	Rule string `json:"rule,omitempty"`
	// Path is the place in the source policy.
	Path string `json:"path,omitempty"`
}
