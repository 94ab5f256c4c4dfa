package policy

import (
	"slices"

	"github.com/kvap/kvap/diag"
)

// A File is what one source file held.
type File struct {
	Name       string
	Policies   []*Policy
	Exceptions []*Exception
	Cleanups   []*Cleanup
	Unread     []*Unread
}

// A Policy is a ClusterPolicy or Policy of kyverno.io or kvap.dev, or a ValidatingPolicy,
// ImageValidatingPolicy, MutatingPolicy or GeneratingPolicy of policies.kyverno.io. Defaults are filled in; v2beta1
// is brought to the v1 form.
type Policy struct {
	Pos         diag.Pos
	APIVersion  string
	Kind        string // ClusterPolicy, Policy, or one of the kinds in CEL, with Namespaced in front or without
	Name        string
	Namespace   string // of a namespaced kind; "default" where the source names none
	Labels      map[string]string
	Annotations map[string]string
	// Carrier is the document of Open Cluster Management that carries the policy; nil where none does.
	Carrier *Node

	Action        Action // of rules that name none
	Overrides     []ActionOverride
	FailurePolicy FailurePolicy
	EmitWarning   bool
	Admission     bool
	Background    bool
	ApplyOne      bool // applyRules: One
	// MutateExisting and GenerateExisting are what rules that say nothing themselves
	// do with existing objects when the policy changes.
	MutateExisting   bool // mutateExistingOnPolicyUpdate
	GenerateExisting bool
	ServerSideApply  bool  // useServerSideApply, of generated objects
	MatchConditions  []CEL // webhookConfiguration.matchConditions

	Rules []*Rule // as written, in order; Expand adds those for pod controllers

	// Validating is set, and Rules empty, for a ValidatingPolicy or an ImageValidatingPolicy;
	// Mutating for a MutatingPolicy; Generating for a GeneratingPolicy.
	Validating *Validating
	Mutating   *Mutating
	Generating *Generating

	// Invalid tells of an error outside of the rules. All rules are then invalid too.
	Invalid bool

	// Source is the whole document, so that a remainder can be written as a valid policy.
	Source *Node

	rehearsed map[int]bool // rules by their index, see Rehearse
}

// Namespaced tells whether the policy binds only its own namespace.
func (p *Policy) Namespaced() bool {
	switch p.Kind {
	case "Policy", "NamespacedValidatingPolicy", "NamespacedMutatingPolicy", "NamespacedGeneratingPolicy", "NamespacedImageValidatingPolicy":
		return true
	}
	return false
}

// InCEL tells of a kind that is written in CEL. Such a policy has no Rules: it is one rule
// itself.
func (p *Policy) InCEL() bool { return p.Validating != nil || p.Mutating != nil || p.Generating != nil }

// MatchConstraints are those of a policy in CEL; nil where it has none.
func (p *Policy) MatchConstraints() *MatchConstraints {
	switch {
	case p.Validating != nil:
		return p.Validating.MatchConstraints
	case p.Mutating != nil:
		return p.Mutating.MatchConstraints
	case p.Generating != nil:
		return p.Generating.MatchConstraints
	}
	return nil
}

// StartsWork tells of a policy that has something done besides answering the request.
func (p *Policy) StartsWork() bool {
	return p.Generating != nil || p.Mutating != nil && p.Mutating.Existing || slices.ContainsFunc(p.Rules, (*Rule).StartsWork)
}

// An Action is what happens to a request that violates a rule.
type Action string

// The actions.
const (
	Audit   Action = "Audit"
	Enforce Action = "Enforce"
)

// A FailurePolicy is what happens to a request on which a rule errs.
type FailurePolicy string

// The failure policies.
const (
	Fail   FailurePolicy = "Fail"
	Ignore FailurePolicy = "Ignore"
)

// An ActionOverride is an action for some namespaces.
type ActionOverride struct {
	Pos               diag.Pos
	Action            Action
	Namespaces        []string // wildcards; nil means any
	NamespaceSelector *Selector
}

// A Rule is one rule of a ClusterPolicy or Policy. At most one of Validate,
// Mutate, Generate and VerifyImages is set.
type Rule struct {
	Pos    diag.Pos
	Name   string // as Kyverno reports it: with autogen- in front in an expansion
	Index  int    // in the policy's list of rules as written
	Origin string // the name as written
	// Expansion is "" for a rule as written, "autogen" for the pod controllers
	// and "autogen-cronjob" for CronJob.
	Expansion string
	// Controllers are the kinds for which the engine evaluates a rule of an
	// expansion, sorted. Nil for a rule as written.
	Controllers []string
	// Invalid tells of an error in the rule or around it. What could be read is
	// here, but nobody knows what the author meant: the rule has no meaning to
	// judge or translate by. It is kept so that it can be reported.
	Invalid bool

	Match            *MatchBlock
	Exclude          *MatchBlock // nil when absent
	Context          []*ContextEntry
	Preconditions    *Conditions // nil when absent
	CELPreconditions []CEL
	ImageExtractors  *Node
	// SkipBackground is skipBackgroundRequests, true by default: what the engine's
	// own controller does triggers nothing.
	SkipBackground bool
	// Properties are what reports tell of the rule's results besides: texts, with variables.
	Properties []Pair
	// Deletes tells of a rule that denies what a cleanup policy deletes, see Cleanup.AsRule: a
	// text of the object is no pattern where that would make its preconditions true.
	Deletes bool

	Validate     *Validate
	Mutate       *Mutate
	Generate     *Generate
	VerifyImages []*ImageVerification

	Source *Node
}

// Type is validate, mutate, generate or verifyImages; "" when a rule has no body.
func (rule *Rule) Type() string {
	switch {
	case rule.Validate != nil:
		return "validate"
	case rule.Mutate != nil:
		return "mutate"
	case rule.Generate != nil:
		return "generate"
	case rule.VerifyImages != nil:
		return "verifyImages"
	}
	return ""
}

// StartsWork tells of a rule that has something done besides answering the request:
// it generates objects, or changes others than the one of the request.
func (rule *Rule) StartsWork() bool {
	return rule.Generate != nil || rule.Mutate != nil && rule.Mutate.Existing
}

// A MatchBlock is a match or exclude block. The first that is non-empty of Any,
// All and Legacy counts.
type MatchBlock struct {
	Pos    diag.Pos
	Any    []*Filter
	All    []*Filter
	Legacy *Filter
}

// A Filter is one resource filter: everything given must hold.
type Filter struct {
	Pos               diag.Pos
	Kinds             []Text
	Name              *Text
	Names             []Text
	Namespaces        []Text
	Operations        []string
	Annotations       []Pair // key and value may hold wildcards
	Selector          *Selector
	NamespaceSelector *Selector
	Roles             []Text
	ClusterRoles      []Text
	Subjects          []Subject
}

// A Text is a string with its place.
type Text struct {
	Pos   diag.Pos
	Value string
}

// A Pair is a key and a value with their place, in source order.
type Pair struct {
	Pos        diag.Pos
	Key, Value string
}

// A Selector is a label selector, whose matchLabels may hold wildcards.
type Selector struct {
	Pos         diag.Pos
	MatchLabels []Pair
	Expressions []SelectorExpression
}

// A SelectorExpression is one of a selector's matchExpressions.
type SelectorExpression struct {
	Pos      diag.Pos
	Key      string
	Operator string // In, NotIn, Exists, DoesNotExist
	Values   []string
}

// A Subject is a user, group or service account of a filter.
type Subject struct {
	Pos       diag.Pos
	Kind      string // User, Group, ServiceAccount; any other never matches
	Name      string
	Namespace string
}

// Conditions are preconditions or the conditions of a deny.
type Conditions struct {
	Pos diag.Pos
	// Any is nil when absent; present and empty it is false.
	Any []*Condition
	All []*Condition
}

// A Condition compares a key with a value; both may hold variables.
type Condition struct {
	Pos diag.Pos
	Key *Node // nil when absent, which counts as null
	// Operator is spelled as documented (Equals for Equal, AnyIn for anyin), save
	// for the GreaterThan, LessThan and Duration families: an operator of these
	// in another case is kept as written, and never true.
	Operator string
	Value    *Node // nil when absent, which counts as null
	Message  string
}

// A Validate is the body of a validate rule. Of Pattern, AnyPattern, Deny,
// ForEach, PodSecurity, CEL, Manifests and Assert one is set.
type Validate struct {
	Pos           diag.Pos
	Message       Text
	Action        Action // "" when the rule names none
	Overrides     []ActionOverride
	AllowExisting bool // allowExistingViolations; true by default

	Pattern     *Node
	AnyPattern  *Node // a list, if the source is right
	Deny        *Deny
	ForEach     []*ForEach
	PodSecurity *PodSecurity
	CEL         *CELRule
	Manifests   *Node
	Assert      *Node
}

// A Deny refuses what its conditions are true of. No conditions are always true.
type Deny struct {
	Pos        diag.Pos
	Conditions *Conditions // nil when absent
}

// A ForEach is one entry of validate.foreach.
type ForEach struct {
	Pos           diag.Pos
	List          Text // a bare JMESPath expression
	ElementScope  *bool
	Context       []*ContextEntry
	Preconditions *Conditions
	Pattern       *Node
	AnyPattern    *Node
	Deny          *Deny
	ForEach       []*ForEach
}

// A PodSecurity holds a pod to a level of the Pod Security Standards.
type PodSecurity struct {
	Pos     diag.Pos
	Level   string
	Version string // as written; "" and "latest" mean the newest
	Exclude []PodSecurityExclude
}

// A PodSecurityExclude takes violations of one control out.
type PodSecurityExclude struct {
	Pos             diag.Pos
	ControlName     string
	Images          []string
	RestrictedField string
	Values          []string
}

// A CEL is a named CEL expression as written.
type CEL struct {
	Pos        diag.Pos
	Name       string
	Expression string
}

// A CELRule is validate.cel.
type CELRule struct {
	Pos              diag.Pos
	Generate         bool
	Expressions      []CELValidation
	Variables        []CEL
	ParamKind        *ParamKind
	ParamRef         *ParamRef
	AuditAnnotations []CEL // Name is the key, Expression the valueExpression
}

// A CELValidation is one validation of a CEL rule.
type CELValidation struct {
	Pos               diag.Pos
	Expression        string
	Message           string
	MessageExpression string
	Reason            string
}

// A ParamKind names the kind of a policy's parameters.
type ParamKind struct {
	Pos              diag.Pos
	APIVersion, Kind string
}

// A ParamRef points at the parameters themselves.
type ParamRef struct {
	Pos                     diag.Pos
	Name, Namespace         string
	Selector                *Selector
	ParameterNotFoundAction string
}

// An Exception is a PolicyException.
type Exception struct {
	Pos         diag.Pos
	Name        string
	Namespace   string
	Exceptions  []ExceptionRef
	Match       *MatchBlock
	Conditions  *Conditions
	PodSecurity []PodSecurityExclude
	Background  bool
	// CEL is set, and Exceptions, Match, Conditions and PodSecurity are empty, for one of
	// policies.kyverno.io.
	CEL *CELException
	// Invalid tells of an error: nobody knows what would be excepted, so nothing is.
	Invalid bool
	Source  *Node
}

// An ExceptionRef names the policy and the rules an exception is from.
type ExceptionRef struct {
	Pos        diag.Pos
	PolicyName string   // <namespace>/<name> for a Policy
	RuleNames  []string // wildcards
}

// A Validating is the spec of a ValidatingPolicy: a native policy with a few
// additions. That of an ImageValidatingPolicy has Images too.
type Validating struct {
	Pos              diag.Pos
	MatchConstraints *MatchConstraints // nil when absent
	MatchConditions  []CEL
	Variables        []CEL
	Validations      []CELValidation
	AuditAnnotations []CEL
	Actions          []string // validationActions: Deny, Audit, Warn
	// Autogen is the list of controllers of autogen.podControllers; nil when absent.
	Autogen         []string
	AutogenVAP      *bool // autogen.validatingAdmissionPolicy.enabled
	ExistingAllowed bool
	// Images is set for an ImageValidatingPolicy.
	Images *ImagePolicy
	Evaluation
}

// An Evaluation says when a policy in CEL is asked.
type Evaluation struct {
	AdmissionOff  bool // evaluation.admission.enabled: false
	BackgroundOff bool
	Mode          string // Kubernetes (default) or JSON
}

// MatchConstraints say which requests a policy in CEL is about, as those of a
// ValidatingAdmissionPolicy do.
type MatchConstraints struct {
	Pos               diag.Pos
	Rules             []ResourceRule
	Exclude           []ResourceRule
	NamespaceSelector *Selector // nil when absent
	ObjectSelector    *Selector // nil when absent
	MatchPolicy       string    // Exact, Equivalent, or empty when absent
}

// A ResourceRule names operations on resources.
type ResourceRule struct {
	Pos                         diag.Pos
	Groups, Versions, Resources []string
	Operations                  []string
	Names                       []string // of objects; all if empty
	Scope                       string   // Cluster, Namespaced or *
}

// A Cleanup is a CleanupPolicy, a ClusterCleanupPolicy, or a DeletingPolicy of
// policies.kyverno.io: objects that match are deleted on a schedule.
type Cleanup struct {
	Pos       diag.Pos
	Kind      string
	Name      string
	Namespace string // of a CleanupPolicy or NamespacedDeletingPolicy; "default" where the source names none
	Schedule  Text   // in the form of cron
	// Deleting is what a DeletingPolicy says in place of Match, Exclude, Context and
	// Conditions; nil for the others.
	Deleting   *Deleting
	Match      *MatchBlock
	Exclude    *MatchBlock // nil when absent
	Context    []*ContextEntry
	Conditions *Conditions // nil when absent
	// Propagation is deletionPropagationPolicy: Foreground, Background, Orphan, or ""
	// for the cluster's own way.
	Propagation string
	Invalid     bool // there is an error in it
	Source      *Node
}
