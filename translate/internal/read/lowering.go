package read

import (
	"maps"
	"slices"

	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/schema"
	"github.com/kvap/kvap/translate/internal/api"
	"github.com/kvap/kvap/translate/internal/native"
	"github.com/kvap/kvap/translate/internal/partial"
	"github.com/kvap/kvap/vap"
)

// A Lowering is the walk over one rule for one kind of object and one set of
// operations. It decides and builds at once: where a construct has no native
// form it panics with a refusal, which lower turns into the rule's reason.
type Lowering struct {
	Opts    *api.Options
	Release Release
	Policy  *policy.Policy
	Rule    *policy.Rule
	// PolicyConditions are the match conditions that the policy itself has.
	PolicyConditions []vap.Condition
	Pos              diag.Pos   // of the construct at hand
	Notes            *diag.List // where the user is told; nil where nobody is to be
	// Findings is where the walk notes what it has decided; nil where nobody asks.
	Findings *Findings
	// OfTemplate tells that a Pod's metadata is read as that of a template is, which may
	// not be there.
	OfTemplate bool
	// Selected is the selector of namespaces that the object asks for.
	Selected *policy.Selector

	*Gathered
	Environment
}

// Gathered is what accumulates along a walk, whatever environment it is in.
type Gathered struct {
	Variables []vap.Variable
	ListTypes map[string]*schema.Type // of the variables that are joined lists
	Params    *native.Params
	// UsesNamespace is set where the match reads the labels of the namespace.
	UsesNamespace bool
	// Guesses are the kinds of the match that no schema knows.
	Guesses []Guess
	// Tells is set by an error whose text is for whoever is denied.
	Tells bool
	// RuntimeTexts are the texts that leaves of patterns stand for.
	RuntimeTexts map[*policy.Node]RuntimeText
	// Entries is how many times a context variable has been worked out.
	Entries int
	// steps is how many patterns and expressions have been gone through.
	steps int
}

// NewGathered is what a walk begins with.
func NewGathered() *Gathered {
	return &Gathered{RuntimeTexts: map[*policy.Node]RuntimeText{}}
}

// An Environment is what an expression means where the walk is: what names stand
// for, what is known there, and how what may be missing is read. A construct that
// changes it for what is inside goes on with a copy of the walk:
//
//	l = l.Inside()
type Environment struct {
	Binders *cel.Scope // the variables of the comprehensions around
	Target  native.Target
	Ops     []native.Operation // those this walk is for
	// Object and Old are the request's objects; literal null where the operations
	// have none.
	Object, Old Operand
	// Trigger is what the request is about where that is not the object: a rule with targets changes
	// another one. It is nil else.
	Trigger *Trigger
	// Now is the environment of the new object while the old one is judged in its place, and
	// nil else.
	Now *Environment
	// DeleteRewrite makes request.object mean the old object, inside {{ }} on DELETE.
	DeleteRewrite bool
	// Exception is set inside a PolicyException's match, which ignores operations
	// and does not apply namespace selectors to Namespaces.
	Exception bool

	Context Context
	Scope   map[string]Operand // foreach variables
	Element *Operand           // what patterns in a foreach look at
	Facts   []cel.Bool         // what is known to hold
	// Loaded are the context entries that the query at hand names, and their values.
	Loaded map[string]LoadedEntry
}

// A Trigger is what a request is about: its target, and its objects.
type Trigger struct {
	Target      native.Target
	Object, Old Operand
}

// Requested is what the request is about.
func (e Environment) Requested() Trigger {
	if e.Trigger != nil {
		return *e.Trigger
	}
	return Trigger{e.Target, e.Object, e.Old}
}

// AsStored tells that objects are looked at as they are behind their validation: all but those
// that a rule changes on their way in.
func (l *Lowering) AsStored() bool { return l.Rule.Mutate == nil || l.Rule.Mutate.Existing }

// Inside is the same walk, whose environment and position may change without this one's.
func (l *Lowering) Inside() *Lowering {
	in := *l
	return &in
}

// OfOld tells that the old object is judged in place of the new one.
func (e Environment) OfOld() bool { return e.Now != nil }

// OfNewObject is the environment of the new object, while the old one is judged.
func (e Environment) OfNewObject() Environment {
	now := *e.Now
	now.Binders = e.Binders
	return now
}

// Attempt runs build. Where something stops it, a refusal or a question that the
// walk is not ready for, that is given back, and nothing is left of what build
// gathered.
func (l *Lowering) Attempt(build func()) (stop any) {
	before := *l.Gathered
	told := 0
	if l.Notes != nil {
		told = len(*l.Notes)
	}
	defer func() {
		stop = recover()
		switch stop.(type) {
		case nil:
			return
		case Refusal, PerOperation:
		default:
			panic(stop)
		}
		*l.Gathered = before
		if l.Notes != nil {
			*l.Notes = (*l.Notes)[:told]
		}
	}()
	build()
	return nil
}

// Probed runs build, of which nothing is kept.
func (l *Lowering) Probed(build func(l *Lowering)) {
	before := *l.Gathered
	build(l.Quietly())
	*l.Gathered = before
}

// Quietly is the same walk, which tells the user of nothing.
func (l *Lowering) Quietly() *Lowering {
	l = l.Inside()
	l.Notes = nil
	return l
}

// PerOperation stops a walk for several operations that reads what differs between
// them: each then has a walk of its own.
type PerOperation struct{}

// Read is j, unless reading it stops the walk.
func (l *Lowering) Read(j Operand) Operand {
	if j.Stops != nil {
		panic(j.Stops)
	}
	return j
}

// A Refusal is why a rule has no native form.
type Refusal struct{ diag.Diagnostic }

// Unsupported refuses a construct for which the target has no expression.
func (l *Lowering) Unsupported(what string) Refusal {
	return Refusal{diag.Warnf(l.Pos, diag.NoExpression, "%s has no native form; the webhook will judge this rule", what)}
}

// Refuse is unsupported with a code of its own.
func (l *Lowering) Refuse(code diag.Code, format string, args ...any) Refusal {
	return Refusal{diag.Warnf(l.Pos, code, format+"; the webhook will judge this rule", args...)}
}

// SetPos sets the position for the refusals and notes of what follows.
func (l *Lowering) SetPos(pos diag.Pos) {
	if pos != (diag.Pos{}) {
		l.Pos = pos
	}
}

// Note tells the user of a difference, once.
func (l *Lowering) Note(code diag.Code, format string, args ...any) {
	if l.Notes != nil {
		*l.Notes = append(*l.Notes, diag.Warnf(l.Pos, code, format, args...))
	}
}

// HasNoted tells that the user has been told of a code.
func (l *Lowering) HasNoted(code diag.Code) bool {
	return l.Notes != nil && slices.ContainsFunc(*l.Notes, func(d diag.Diagnostic) bool { return d.Code == code })
}

// On tells that the walk is for an operation, besides others maybe.
func (e Environment) On(op native.Operation) bool { return slices.Contains(e.Ops, op) }

// SortedKeys are the keys of a map of the policy, in the order of the output.
func SortedKeys(m map[string]any) []string { return slices.Sorted(maps.Keys(m)) }

// Action is the rule's own action; overrides do not count for excuses.
func Action(l *Lowering) policy.Action {
	return native.BaseAction(l.Policy, l.Rule)
}

// TooLarge is the refusal of a rule whose trees grow past all bounds.
func TooLarge(at diag.Pos) Refusal {
	return Refusal{diag.Warnf(at, diag.TooLarge, "the rule would become larger than any that the API server takes; the webhook will judge this rule")}
}

// PatternSubject is the value that a pattern is held against: the foreach element
// in scope, or the object.
func (e Environment) PatternSubject() (Place, bool) {
	j := e.Object
	if e.Element != nil {
		j = *e.Element
	}
	if j.Form != PlaceForm {
		return Place{}, false
	}
	return j.V.Settled(), true
}

// Findings are what the walks over a rule have decided, for who says what the rule does.
type Findings struct {
	Wholes    []Whole
	Decisions []Decision
}

// A Whole is what a rule comes to for a target and some operations. Where no request meets what
// it asks before its body, Holds is zero.
type Whole struct {
	Target     native.Target
	Operations []native.Operation
	Match      cel.Bool
	Pre, Holds partial.Bool
	// Unread tells that the rule is an error on each of these requests.
	Unread bool
	// Needed are fields of the object without which the preconditions are an error.
	Needed [][]string
}

// A Decision is what a condition, or a part of a pattern, comes to in a walk.
type Decision struct {
	Condition *policy.Condition
	Is        partial.Bool // what the condition comes to
	Pattern   *policy.Node
	Of        Place // what stands where the part of the pattern does
	Never     bool  // nothing of it satisfies the part
}

// Decide notes what a condition comes to.
func (l *Lowering) Decide(c *policy.Condition, is partial.Bool) {
	l.decide(Decision{Condition: c, Is: is, Never: !is.Errs && is.Expr.IsFalse()})
}

// DecidePattern notes whether nothing satisfies a part of a pattern.
func (l *Lowering) DecidePattern(v Place, p *policy.Node, never bool) {
	l.decide(Decision{Pattern: p, Of: v, Never: never})
}

// decide notes a decision, where somebody asks and this is no walk of which nothing is kept.
func (l *Lowering) decide(d Decision) {
	if l.Findings != nil && l.Notes != nil {
		l.Findings.Decisions = append(l.Findings.Decisions, d)
	}
}

// WhereRead is where a condition is no error; false where no condition tells that beforehand.
// Nothing that this needs is kept.
func (l *Lowering) WhereRead(b partial.Bool) (where cel.Bool, ok bool) {
	l.Attempt(func() {
		l.Probed(func(*Lowering) {
			apart, told := b.Apart()
			where, ok = apart.Readable, told
		})
	})
	return where, ok
}

// A ContextVar is a context entry. It is lowered where a query names it: what is never
// named has no errors, in Kyverno and here.
type ContextVar struct {
	Entry *policy.ContextEntry
	Index int // among the entries of the context
	// Outer is the context that the entry may use: the entries before it.
	Outer Context
}

// A Context is the entries that may be used at a place. Contexts of one rule share
// what they have by name, and each sees the first so many of all entries.
type Context struct {
	Named map[string][]*ContextVar // in order
	Size  int
}

// Get is the last entry of a name, or nil.
func (c Context) Get(name string) *ContextVar {
	for _, v := range slices.Backward(c.Named[name]) {
		if v.Index < c.Size {
			return v
		}
	}
	return nil
}

// A LoadedEntry is a context entry that a query names: its value, and what loading it demands.
type LoadedEntry struct {
	Value   Operand
	Loading Demands
}

// UseParams takes an object as the rule's params, of which there is one.
func UseParams(l *Lowering, name, namespace string) cel.Value {
	apiVersion, kind := l.Opts.Params.Kind()
	use := &native.Params{Kind: kind, APIVersion: apiVersion, Name: name, Namespace: namespace}
	if l.Params != nil && *l.Params != *use {
		panic(l.Refuse(diag.OutsideData, "a second ConfigMap, %s, cannot be read: a policy has one object of params", name))
	}
	if l.Params == nil && l.Opts.Params == api.ParamsConfigMap {
		l.Note(diag.ConfigMapParams, "the ConfigMap %s becomes the params of the policy; keep a binding that uses a ConfigMap at all times, or use --params kvap", name)
	}
	l.Params = use
	return cel.Ident("params")
}

// Let is a composed variable of the unit at hand with the value. An expression
// has one variable, however often it is asked for; a name that stands for another
// expression gets a number.
func Let(l *Lowering, name string, expr cel.Value) cel.Value {
	for _, v := range l.Variables {
		if cel.Equal(v.Expr, expr) {
			return native.VariableNamed(v.Name)
		}
	}
	v := vap.Variable{Pos: l.Pos, Name: native.FreshName(name, l.Variables), Expr: expr}
	l.Variables = append(l.Variables, v)
	return native.VariableNamed(v.Name)
}

// Defined is what a variable that the walk has made stands for.
func Defined(l *Lowering, name string) (cel.Value, bool) {
	i := slices.IndexFunc(l.Variables, func(v vap.Variable) bool { return v.Name == name })
	if i < 0 {
		return cel.Value{}, false
	}
	return l.Variables[i].Expr, true
}
