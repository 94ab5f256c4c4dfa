package vap

import (
	"cmp"
	"slices"
	"unicode/utf8"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/diag"
)

// DefaultExcludedNamespaces are the namespaces that bindings leave out unless
// told otherwise: those that Kyverno's own configuration leaves out.
func DefaultExcludedNamespaces() []string {
	return []string{"kube-system", "kube-public", "kube-node-lease"}
}

// EmitOptions are the choices of output that are no rule's own.
type EmitOptions struct {
	// ExcludeNamespaces are left out by every binding that does not reach them. nil means the default
	// ones, and an empty list none.
	ExcludeNamespaces []string
	// Files are the names by which provenance calls files of the source. One that is
	// not among them is called as it is.
	Files map[string]string
	// Static makes manifests for an API server's directory of static policies,
	// whose names end in .static.k8s.io and which have no params.
	Static bool
	// Params are written into static policies that read them.
	Params []*unstructured.Unstructured
	// Taken are names of policies and bindings that somebody else has in the cluster. An
	// object that would have one gets another name.
	Taken []string
}

// Excluded are the namespaces that bindings leave out.
func (o EmitOptions) Excluded() []string {
	if o.ExcludeNamespaces == nil {
		return DefaultExcludedNamespaces()
	}
	return o.ExcludeNamespaces
}

// Objects are a policy and its bindings.
type Objects struct {
	Draft    *Draft // what they were made from
	Policy   *admissionregistrationv1.ValidatingAdmissionPolicy
	Bindings []*admissionregistrationv1.ValidatingAdmissionPolicyBinding
}

// The limits of the API server that a draft can exceed.
const (
	MaxExpressionLength = 100_000 // code points, by the parser
	MaxMatchConditions  = 64
	MaxAuditAnnotations = 20
	MaxAuditExpression  = 5 << 10
)

const (
	textWidth            = 100
	defaultMatchPolicy   = admissionregistrationv1.Equivalent
	defaultFailurePolicy = admissionregistrationv1.Fail
	defaultNotFound      = admissionregistrationv1.DenyAction
)

// Emit turns the trees of d into text and d into objects, with every field that
// the API server would default. Where a diagnostic is an error there is no
// object: the caller leaves the draft's rules to the webhook.
func Emit(d *Draft, opts EmitOptions) (Objects, diag.List) {
	e := &emitter{draft: d, opts: opts}
	name := e.policyName(d.Base)
	policy := e.policy(name)
	if e.found.HasErrors() {
		return Objects{}, e.found.Sort()
	}
	return Objects{Draft: d, Policy: policy, Bindings: e.bindings(name)}, e.found.Sort()
}

// EmitWith is Emit for another kind of policy than one that validates, which has a body
// of its own: texts are its expressions as they are written, and the variables that they read
// are kept. The params of a static policy are written into body as they are into d.
func EmitWith(d *Draft, body []Expression, opts EmitOptions) (frame Objects, texts []string, found diag.List) {
	e := &emitter{draft: d, opts: opts}
	if e.writeParams(body); e.found.HasErrors() {
		return Objects{}, nil, e.found
	}
	for _, x := range body {
		texts = append(texts, e.text(x.Pos, x.Expr))
	}
	name := e.policyName(d.Base)
	policy := e.policy(name)
	if e.found.HasErrors() {
		return Objects{}, nil, e.found.Sort()
	}
	return Objects{Draft: d, Policy: policy, Bindings: e.bindings(name)}, texts, e.found.Sort()
}

// An Expression is one of a body that is not of this package.
type Expression struct {
	Pos  diag.Pos
	Expr cel.Value
}

// EmitAll emits drafts that go into the same cluster.
func EmitAll(drafts []*Draft, opts EmitOptions) ([]Objects, diag.List) {
	var out []Objects
	var found diag.List
	e := NewEmitter(opts)
	for _, d := range drafts {
		objects, ds := e.InCluster(Emit(d, opts))
		found = append(found, ds...)
		if !ds.HasErrors() {
			out = append(out, objects)
		}
	}
	return out, found.Sort()
}

// An Emitter puts objects, one after the other, into a cluster.
type Emitter struct {
	opts  EmitOptions
	taken map[string]bool
	tried map[string]string // by name, the last hash that told two drafts apart
}

// NewEmitter makes an emitter for a cluster that has nothing but what somebody else has.
func NewEmitter(opts EmitOptions) *Emitter {
	return &Emitter{opts: opts, taken: map[string]bool{}, tried: map[string]string{}}
}

// isTaken tells that a draft cannot have a name.
func (m *Emitter) isTaken(e *emitter, name string) bool {
	return m.taken[name] || slices.Contains(m.opts.Taken, name) || slices.ContainsFunc(e.bindings(name),
		func(b *admissionregistrationv1.ValidatingAdmissionPolicyBinding) bool {
			return slices.Contains(m.opts.Taken, b.Name)
		})
}

// InCluster is what Emit made of a draft, emitted once more where its name is taken: it
// gets a suffix that is a hash of what told it apart in the source.
func (m *Emitter) InCluster(alone Objects, found diag.List) (Objects, diag.List) {
	if found.HasErrors() {
		return alone, found
	}
	first := alone.Policy.Name
	e := &emitter{draft: alone.Draft, opts: m.opts}
	if !m.isTaken(e, first) {
		m.taken[first] = true
		return alone, found
	}
	base := e.draft.Base
	salt, ok := m.tried[first]
	if !ok {
		salt = base
	}
	name := first
	for ; m.isTaken(e, name); salt += "+" {
		name = e.policyName(base + "-" + shortHash(salt))
	}
	policy := e.policy(name)
	if e.found.HasErrors() {
		return Objects{}, e.found.Sort()
	}
	m.taken[name], m.tried[first] = true, salt
	return Objects{Draft: e.draft, Policy: policy, Bindings: e.bindings(name)}, e.found.Sort()
}

type emitter struct {
	draft *Draft
	opts  EmitOptions
	found diag.List
	vars  []variable
	reads map[string]bool // the variables that something reads
	guard string          // the name of the guard's match condition, if there is one
	// standIns are the variables for what is in several places of a request.
	standIns []standIn
}

// A variable has its text beside the draft's tree.
type variable struct {
	Variable
	text string
}

func (e *emitter) fail(d diag.Diagnostic) { e.found = append(e.found, d) }

func (e *emitter) policyName(parts ...string) string {
	if e.opts.Static {
		return objectName(maxNameLength-len(staticSuffix), parts...) + staticSuffix
	}
	return objectName(maxNameLength, parts...)
}

func (e *emitter) policy(name string) *admissionregistrationv1.ValidatingAdmissionPolicy {
	e.writeParams(nil)
	d := e.draft
	failure := admissionregistrationv1.FailurePolicyType(d.FailurePolicy)
	if failure == "" {
		failure = defaultFailurePolicy
	}
	spec := admissionregistrationv1.ValidatingAdmissionPolicySpec{
		ParamKind:        e.paramKind(),
		MatchConstraints: d.Constraints.withoutOwn().MatchResources(),
		FailurePolicy:    &failure,
	}
	spec.MatchConditions = e.conditions()
	e.variables()
	spec.Validations = e.validations()
	spec.AuditAnnotations = e.audits()
	spec.Variables = e.used()
	return &admissionregistrationv1.ValidatingAdmissionPolicy{
		TypeMeta:   metav1.TypeMeta{APIVersion: admissionregistrationv1.SchemeGroupVersion.String(), Kind: "ValidatingAdmissionPolicy"},
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: e.labels(), Annotations: annotate(d, e.opts, e.guard)},
		Spec:       spec,
	}
}

func (e *emitter) labels() map[string]string {
	out := map[string]string{}
	for k, v := range e.draft.Labels {
		out[k] = v
	}
	out[ManagedByLabel] = ManagedBy
	return out
}

func (e *emitter) paramKind() *admissionregistrationv1.ParamKind {
	p := e.draft.ParamKind
	if p == nil {
		return nil
	}
	return &admissionregistrationv1.ParamKind{APIVersion: p.APIVersion, Kind: p.Kind}
}

// pos is where the draft's first rule stands, for what concerns the whole.
func (e *emitter) pos() diag.Pos {
	if len(e.draft.Members) > 0 {
		return e.draft.Members[0].Pos
	}
	return diag.Pos{}
}

// text is v as it goes into the object. The variables that v reads are kept.
func (e *emitter) text(pos diag.Pos, v cel.Value) string {
	if e.reads == nil {
		e.reads = map[string]bool{}
	}
	for _, name := range v.Uses("variables") {
		e.reads[name] = true
	}
	return e.print(pos, v)
}

// print is v as text, which must not be too long.
func (e *emitter) print(pos diag.Pos, v cel.Value) string {
	s := e.textOf(v)
	if n := utf8.RuneCountInString(s); n > MaxExpressionLength {
		e.fail(expressionTooLong(pos, n))
	}
	return s
}

// Unguarded is the objects once more, without their guard.
func (m *Emitter) Unguarded(o Objects) Objects {
	o.Draft.Unguard()
	e := &emitter{draft: o.Draft, opts: m.opts}
	o.Policy = e.policy(o.Policy.Name)
	return o
}

// textOf leaves what the author wrote, and nothing has changed, as it is written.
func (e *emitter) textOf(v cel.Value) string { return cmp.Or(v.Written(), e.short(v).Text(textWidth)) }

// short is v in its short form, unless that is the author's to choose.
func (e *emitter) short(v cel.Value) cel.Value {
	if e.draft.Authored {
		return v
	}
	return v.Short()
}

// conditions are the match conditions. More than the API server allows become
// one: a false condition wins over an erring one in a list as in a conjunction.
func (e *emitter) conditions() []admissionregistrationv1.MatchCondition {
	var kept []Condition
	guard := e.guardText()
	for _, c := range e.draft.Conditions {
		if !c.Expr.IsTrue() && !(c.Follows && guard != "") {
			kept = append(kept, c)
		}
	}
	if len(kept)+e.draft.guards() > MaxMatchConditions {
		all := make([]cel.Bool, len(kept))
		for i, c := range kept {
			all[i] = c.Expr
		}
		kept = []Condition{{Pos: kept[0].Pos, Name: "all", Expr: cel.And(all...)}}
	}
	var names, texts []string
	for _, c := range kept {
		names, texts = append(names, c.Name), append(texts, e.text(c.Pos, e.condition(c.Expr, c.Sound)))
	}
	if guard != "" {
		names, texts = append(names, guardName), append(texts, guard)
	}
	names = conditionNames(names)
	if guard != "" {
		e.guard = names[len(names)-1]
	}
	var out []admissionregistrationv1.MatchCondition
	for i, name := range names {
		out = append(out, admissionregistrationv1.MatchCondition{Name: name, Expression: texts[i]})
	}
	return out
}

// guardText is the guard, which is dropped where it is too long.
func (e *emitter) guardText() string {
	if e.draft.guards() == 0 {
		return ""
	}
	out := e.textOf(e.guardCondition())
	if !e.draft.Before.IsZero() {
		out = excuseComment + out
	}
	if utf8.RuneCountInString(out) > MaxExpressionLength {
		e.draft.Unguard()
		return ""
	}
	return out
}

// settled is a variable of which a type checker has nothing to
// say, although a cluster's does not look at it.
func (e *emitter) settled(v cel.Value) cel.Value {
	for _, checker := range e.draft.Checkers {
		checker.Hidden = func(cel.Shape) bool { return false }
		v = checker.Settle(v)
	}
	return v
}

// variables drops repetitions. The API server accepts a name twice, but then
// server-side apply cannot merge the list.
func (e *emitter) variables() {
	e.declareStandIns()
	have := map[string]cel.Value{}
	for _, v := range e.draft.Variables {
		if other, twice := have[v.Name]; twice {
			if !cel.Equal(other, v.Expr) {
				e.fail(variableTwice(v.Pos, v.Name))
			}
			continue
		}
		have[v.Name] = v.Expr
		v.Expr = e.body(e.settled(v.Expr))
		e.vars = append(e.vars, variable{v, e.print(v.Pos, v.Expr)})
	}
}

// used are the variables that something reads, if only another one that is read.
func (e *emitter) used() []admissionregistrationv1.Variable {
	var out []admissionregistrationv1.Variable
	for _, v := range slices.Backward(e.vars) {
		if !e.reads[v.Name] {
			continue
		}
		for _, name := range v.Expr.Uses("variables") {
			e.reads[name] = true
		}
		out = append(out, admissionregistrationv1.Variable{Name: v.Name, Expression: v.text})
	}
	slices.Reverse(out)
	return out
}

func (e *emitter) audits() []admissionregistrationv1.AuditAnnotation {
	if n := len(e.draft.Audits); n > MaxAuditAnnotations {
		e.fail(tooManyAudits(e.draft.Audits[MaxAuditAnnotations].Pos, n))
	}
	var out []admissionregistrationv1.AuditAnnotation
	for _, a := range e.draft.Audits {
		text := e.text(a.Pos, e.body(a.Value))
		if len(text) > MaxAuditExpression {
			e.fail(auditTooLong(a.Pos, len(text)))
		}
		out = append(out, admissionregistrationv1.AuditAnnotation{Key: a.Key, ValueExpression: text})
	}
	return out
}

// MatchResources are the constraints as the API has them, with its defaults.
func (c Constraints) MatchResources() *admissionregistrationv1.MatchResources {
	policy := admissionregistrationv1.MatchPolicyType(c.MatchPolicy)
	if policy == "" {
		policy = defaultMatchPolicy
	}
	return &admissionregistrationv1.MatchResources{
		NamespaceSelector:    c.NamespaceSelector.object(),
		ObjectSelector:       c.ObjectSelector.object(),
		ResourceRules:        resourceRules(c.Rules),
		ExcludeResourceRules: resourceRules(c.Exclude),
		MatchPolicy:          &policy,
	}
}

func resourceRules(rules []ResourceRule) []admissionregistrationv1.NamedRuleWithOperations {
	var out []admissionregistrationv1.NamedRuleWithOperations
	for _, r := range rules {
		scope := admissionregistrationv1.ScopeType(r.Scope)
		if scope == "" {
			scope = admissionregistrationv1.AllScopes
		}
		var operations []admissionregistrationv1.OperationType
		for _, op := range r.Operations {
			operations = append(operations, admissionregistrationv1.OperationType(op))
		}
		out = append(out, admissionregistrationv1.NamedRuleWithOperations{
			ResourceNames: r.Names,
			RuleWithOperations: admissionregistrationv1.RuleWithOperations{
				Operations: operations,
				Rule: admissionregistrationv1.Rule{
					APIGroups: r.Groups, APIVersions: r.Versions, Resources: r.Resources, Scope: &scope,
				},
			},
		})
	}
	return out
}
