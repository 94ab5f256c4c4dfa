package vap

import (
	"slices"

	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/diag"
)

// A Draft is a ValidatingAdmissionPolicy with its bindings, whose expressions
// are still trees. Passes rewrite drafts; only Emit turns trees into text.
type Draft struct {
	// Base is the stem of the name: the policy's name, and what tells this draft
	// from others of the policy. Emit makes it a valid, unique object name.
	Base string
	// Members are the source rules that this draft enforces, in order.
	Members []Member

	// Deletes tells that object stands for what a DELETE removes too, which a request has
	// as oldObject.
	Deletes bool
	// Pods tells that pod and oldPod stand for a Pod, or for the template of Pods that its
	// controller has. CronJobs tells that CronJobs are among these.
	Pods, CronJobs bool

	FailurePolicy string // Fail or Ignore
	Constraints   Constraints
	ParamKind     *ParamKind
	Conditions    []Condition // matchConditions: all must hold for the validations to run
	// Guard is a match condition too: false only where all validations are true. It
	// is true, or zero, where there is none; one that is too long is left out.
	Guard cel.Bool
	// Before is what must hold of an object for the guard to count of it as the old one, which
	// excuses what it violates itself; zero where the guard asks nothing of the old object.
	Before      cel.Bool
	Variables   []Variable // in order of dependence
	Validations []Validation
	// Authored tells that the expressions are the user's own: what has not changed is
	// written as it was.
	Authored bool
	// Checkers are what the API server's type checker makes of each kind that the
	// draft is about. There are none where the expressions are the user's own.
	Checkers    []cel.Checker
	Audits      []Audit
	Bindings    []Binding
	Labels      map[string]string
	Annotations map[string]string
}

// guardName is the name of the guard's match condition.
const guardName = "violated"

// guards is how many guards there are.
func (d *Draft) guards() int {
	if d.Guard.IsZero() || d.Guard.IsTrue() {
		return 0
	}
	return 1
}

// Unguard takes the guard away, and what messages say only behind one.
func (d *Draft) Unguard() {
	d.Guard, d.Before = cel.True(), cel.Bool{}
	d.Validations = slices.Clone(d.Validations)
	for i := range d.Validations {
		d.Validations[i].More, d.Validations[i].Left = nil, cel.Bool{}
	}
}

// A Member is one source rule, or one expanded form of it.
type Member struct {
	Pos    diag.Pos
	Policy string // name, with its namespace in front for a namespaced policy
	Rule   string // as Kyverno reports it, with autogen- in front in an expansion
	Origin string // as written
	// Resources are those that it is about; nil where these are all that the draft is about.
	Resources []string
}

// Constraints are a policy's or binding's matchConstraints.
type Constraints struct {
	Rules             []ResourceRule
	Exclude           []ResourceRule
	NamespaceSelector Selector
	ObjectSelector    Selector
	MatchPolicy       string // Equivalent where empty
}

// A ResourceRule is one entry of resourceRules.
type ResourceRule struct {
	Groups, Versions, Resources []string
	Operations                  []string
	Names                       []string
	Scope                       string // *, Namespaced or Cluster; * where empty
}

// MatchesNamespaces tells that Namespaces are among what the rule is about.
func (r ResourceRule) MatchesNamespaces() bool {
	has := func(list []string, what string) bool {
		return slices.Contains(list, what) || slices.Contains(list, "*")
	}
	return has(r.Groups, "") && (has(r.Resources, "namespaces") || slices.Contains(r.Resources, "*/*"))
}

// A Selector is a label selector without wildcards.
type Selector struct {
	Labels      []Label
	Expressions []Requirement
}

// A Label is a key and the value it must have.
type Label struct{ Key, Value string }

// A Requirement is one entry of a selector's matchExpressions.
type Requirement struct {
	Key, Operator string
	Values        []string
}

// A ParamKind names the kind of the params.
type ParamKind struct{ APIVersion, Kind string }

// A Condition is one match condition.
type Condition struct {
	Pos  diag.Pos
	Name string
	Expr cel.Bool
	// Sound tells that it is never an error.
	Sound bool
	// Follows tells that it follows from the guard, beside which it is left out.
	Follows bool
}

// A Variable is one composed variable, used as variables.Name.
type Variable struct {
	Pos  diag.Pos
	Name string
	Expr cel.Value
}

// Inlined is an expression with the variables written out: match conditions have none.
func Inlined(v cel.Value, variables []Variable) cel.Value {
	for _, x := range slices.Backward(variables) { // a variable uses only those before it
		v = v.SubstituteField("variables", x.Name, x.Expr)
	}
	return v
}

// A Validation is one check. Member is the index of the rule it belongs to, and Also are
// those of its other forms, about other resources.
type Validation struct {
	Pos               diag.Pos
	Member            int
	Also              []int
	Expr              cel.Bool
	Message           string
	MessageExpression *cel.Value // nil when the message is constant
	// Left is what is left to ask behind a guard that has asked the rest of Expr: false
	// where it has asked everything. It is zero where Expr is asked again.
	Left cel.Bool
	// More is what the message ends with besides. It costs next to nothing where all
	// is well, and is never an error. nil is nothing.
	More   *cel.Value
	Reason string // Invalid where empty
}

// Of tells that the validation is one of a member's.
func (v Validation) Of(member int) bool { return v.Member == member || slices.Contains(v.Also, member) }

// An Audit is one audit annotation.
type Audit struct {
	Pos   diag.Pos
	Key   string
	Value cel.Value
}

// A Binding says where a policy counts and what follows from a violation.
type Binding struct {
	Suffix            string   // told apart from the policy's other bindings; may be empty
	Actions           []string // Deny, Warn, Audit
	NamespaceSelector Selector
	ObjectSelector    Selector
	Rules             []ResourceRule // nil: all that the policy matches
	Reaches           []string       // namespaces that are not left out, though EmitOptions exclude them
	Param             *ParamRef
}

// A ParamRef points at the params of a binding.
type ParamRef struct {
	Name, Namespace string
	Selector        *Selector
	NotFound        string // Allow or Deny
}
