package translate

import (
	"maps"
	"slices"

	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/schema"
)

// A lowering is the walk over one rule for one kind of object and one set of
// operations. It decides and builds at once: where a construct has no native
// form it panics with a refusal, which lower turns into the rule's reason.
type lowering struct {
	b       *binders
	opts    *Options
	release release
	policy  *policy.Policy
	rule    *policy.Rule
	target  target
	ops     []string // the operations this walk is for
	pos     diag.Pos // of the construct at hand

	// object and old are the roots of the request's objects; literal null where the
	// operations have none.
	object, old operand
	// prior is set while the old object is judged in place of the new one.
	prior bool
	// now is the walk over the new object while the old one is judged.
	now *lowering
	// deleteRewrite makes request.object mean the old object, inside {{ }} on DELETE.
	deleteRewrite bool
	// errs is set by everything that builds an expression which may be an error.
	errs bool
	// readsImages is set by everything that reads images, which is an error where
	// one is no reference.
	readsImages bool
	// runtimeTexts are the texts that leaves of the pattern at hand stand for, and
	// patternNeeds what must be there for them.
	runtimeTexts []cel.Value
	patternNeeds []cel.Bool

	scope     map[string]operand // foreach variables
	element   *operand           // what patterns in a foreach look at
	facts     []cel.Bool         // what is known to hold where the walk is
	found     *[]cel.Bool        // where set, strict reads become soft and ask here for what must be there
	context   map[string]*contextVar
	variables []variable
	params    *paramUse
	listTypes map[string]*schema.Type // of the variables that are joined lists
	// usesNamespace is set where the match reads the labels of the namespace.
	usesNamespace bool
	// exception is set inside a PolicyException's match, which ignores operations
	// and does not apply namespace selectors to Namespaces.
	exception, ignoreOps bool
	notes                *diag.List
}

// A variable is a composed variable that the lowering made.
type variable struct {
	pos  diag.Pos
	name string
	expr cel.Value
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

// failing is an expression that is an error, for what Kyverno errs on always.
func (l *lowering) failing(j operand) cel.Bool {
	l.errs = true
	name := j.hint
	if name == "" {
		name = "missing"
	}
	return dyn(cel.Map()).Field(name).Eq(cel.Lit(true).Value)
}

func (l *lowering) on(op string) bool { return slices.Contains(l.ops, op) }

func sortedKeys(m map[string]any) []string { return slices.Sorted(maps.Keys(m)) }
