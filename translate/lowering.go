package translate

import (
	"maps"
	"slices"

	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/schema"
	"github.com/kvap/kvap/translate/internal/native"
	"github.com/kvap/kvap/vap"
)

// A lowering is the walk over one rule for one kind of object and one set of
// operations. It decides and builds at once: where a construct has no native
// form it panics with a refusal, which lower turns into the rule's reason.
type lowering struct {
	opts    *Options
	release release
	policy  *policy.Policy
	rule    *policy.Rule
	// policyConditions are the match conditions that the policy itself has.
	policyConditions []vap.Condition
	pos              diag.Pos // of the construct at hand
	// ofTemplate tells that a Pod's metadata is read as that of a template is, which may
	// not be there.
	ofTemplate bool
	// selected is the selector of namespaces that the object asks for.
	selected *policy.Selector

	*gathered
	environment
}

// gathered is what accumulates along a walk, whatever environment it is in.
type gathered struct {
	variables []native.Variable
	listTypes map[string]*schema.Type // of the variables that are joined lists
	params    *native.Params
	notes     *diag.List // nil where nobody is to be told
	// usesNamespace is set where the match reads the labels of the namespace.
	usesNamespace bool
	// tells is set by an error whose text is for whoever is denied.
	tells bool
	// runtimeTexts are the texts that leaves of patterns stand for.
	runtimeTexts map[*policy.Node]runtimeText
	// entries is how many times a context variable has been worked out.
	entries int
	// steps is how many patterns and expressions have been gone through.
	steps int
}

func newGathered(notes *diag.List) *gathered {
	return &gathered{notes: notes, runtimeTexts: map[*policy.Node]runtimeText{}}
}

// An environment is what an expression means where the walk is: what names stand
// for, what is known there, and how what may be missing is read. A construct that
// changes it for what is inside begins with
//
//	defer l.restore(l.environment)
type environment struct {
	binders *cel.Scope // the variables of the comprehensions around
	target  native.Target
	ops     []native.Operation // those this walk is for
	// object and old are the request's objects; literal null where the operations
	// have none.
	object, old operand
	// prior is set while the old object is judged in place of the new one, and now
	// is then the environment of the new one.
	prior bool
	now   *environment
	// deleteRewrite makes request.object mean the old object, inside {{ }} on DELETE.
	deleteRewrite bool
	// exception is set inside a PolicyException's match, which ignores operations
	// and does not apply namespace selectors to Namespaces.
	exception bool

	context context
	scope   map[string]operand // foreach variables
	element *operand           // what patterns in a foreach look at
	facts   []cel.Bool         // what is known to hold
	judged  origin             // of the value that a predicate is about
	// needs is where what is built notes what it needs.
	needs *needs
	// loaded are the context entries that the query at hand names, and their values.
	loaded map[string]loadedEntry
}

// restore goes back to an environment.
func (l *lowering) restore(e environment) { l.environment = e }

// ofNewObject is the environment of the new object, while the old one is judged.
func (e environment) ofNewObject() environment {
	now := *e.now
	now.binders, now.needs = e.binders, e.needs
	return now
}

// attempt runs build. Where something stops it, a refusal or a question that the
// walk is not ready for, that is given back, and nothing is left of what build
// gathered.
func (l *lowering) attempt(build func()) (stop any) {
	before, outer, pos, needed := *l.gathered, l.environment, l.pos, *l.needs
	told := 0
	if l.notes != nil {
		told = len(*l.notes)
	}
	defer func() {
		stop = recover()
		switch stop.(type) {
		case nil:
			return
		case refusal, perOperation:
		default:
			panic(stop)
		}
		*l.gathered, l.environment, l.pos = before, outer, pos
		*l.needs = needed
		if l.notes != nil {
			*l.notes = (*l.notes)[:told]
		}
	}()
	build()
	return nil
}

// probed runs build, of which nothing is kept.
func (l *lowering) probed(build func()) {
	before := *l.gathered
	l.silently(build)
	*l.gathered = before
}

// perOperation stops a walk for several operations that reads what differs between
// them: each then has a walk of its own.
type perOperation struct{}

// read is j, unless reading it stops the walk.
func (l *lowering) read(j operand) operand {
	if j.stops != nil {
		panic(j.stops)
	}
	return j
}

// A refusal is why a rule has no native form.
type refusal struct{ diag.Diagnostic }

// unsupported refuses a construct for which the target has no expression.
func (l *lowering) unsupported(what string) refusal {
	return refusal{diag.Warnf(l.pos, diag.NoExpression, "%s has no native form; the webhook will judge this rule", what)}
}

// refuse is unsupported with a code of its own.
func (l *lowering) refuse(code diag.Code, format string, args ...any) refusal {
	return refusal{diag.Warnf(l.pos, code, format+"; the webhook will judge this rule", args...)}
}

// setPos sets the position for the refusals and notes of what follows.
func (l *lowering) setPos(pos diag.Pos) {
	if pos != (diag.Pos{}) {
		l.pos = pos
	}
}

// note tells the user of a difference, once.
func (l *lowering) note(code diag.Code, format string, args ...any) {
	if l.notes != nil {
		*l.notes = append(*l.notes, diag.Warnf(l.pos, code, format, args...))
	}
}

func (l *lowering) noteWildKey(pos diag.Pos, key string) {
	l.setPos(pos)
	l.note(diag.WildcardKey, "Kyverno takes an arbitrary one of the keys that match %s; here some matching key must satisfy the pattern, and under a negation none may match", key)
}

func (e environment) on(op native.Operation) bool { return slices.Contains(e.ops, op) }

func sortedKeys(m map[string]any) []string { return slices.Sorted(maps.Keys(m)) }
