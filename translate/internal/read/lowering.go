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
