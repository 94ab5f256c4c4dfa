package translate

import (
	"slices"

	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/policy"
)

// excuse adds what excuses a violation: under Enforce, an update of an object
// that violated the rule already is admitted. Kyverno never excuses rules with
// preconditions, and judges the old object as if it were being created by nobody:
// where only a filter on users matches, the old object does not.
func (l *lowering) excuse(u *unit) {
	if !l.excusable() || !slices.Contains(u.ops, opUpdate) {
		return
	}
	w := l.walk(u.target, []operation{opCreate})
	now := l.environmentOf(u.target, []operation{opUpdate})
	w.prior, w.now, w.notes = true, &now, nil
	w.variables, w.params = slices.Clone(u.variables), u.params // a name means one thing
	w.object = w.priorObject()
	w.old = litOf(map[string]any{})
	match := w.applies()
	if match.IsFalse() {
		return
	}
	violated := w.body(&unit{}).not()
	violated.b = w.fuse(violated.b.Simplify())
	if violated.b.IsFalse() {
		return
	}
	if p := l.rule.Validate.Pattern; p != nil {
		now, _ := w.ofNewObject().patternSubject()
		before, _ := w.patternSubject()
		violated.b = cel.And(w.anchorsSeen(now, p), w.anchorsSeen(before, p), violated.b)
	}
	if w.rule.Validate.ForEach != nil {
		violated.b = cel.And(w.failsFirstNow(), violated.b)
	}
	u.exempt, u.excused = cel.And(match, violated.b), u.alwaysExcused(match, violated.b)
	u.variables, u.params = w.variables, w.params
	if len(u.ops) > 1 {
		update := cel.Ident("request").Field("operation").Eq(cel.String(string(opUpdate)))
		u.exempt = cel.And(update, u.exempt)
	}
}

// failsFirstNow is failsFirst of the new object, while the old one is judged.
func (l *lowering) failsFirstNow() cel.Bool {
	defer l.restore(l.environment)
	l.environment = l.ofNewObject()
	return l.failsFirst(l.rule.Validate.ForEach)
}

func (l *lowering) excusable() bool {
	v := l.rule.Validate
	enforced := l.action() == policy.Enforce || l.policy.Rehearses(l.rule)
	return l.opts.Existing != DenyExisting && enforced && v.AllowExisting && v.CEL == nil &&
		l.rule.Preconditions == nil
}

// action is the rule's own action; overrides do not count for excuses.
func (l *lowering) action() policy.Action {
	if a := l.rule.Validate.Action; a != "" {
		return a
	}
	return l.policy.Action
}

// priorObject is the old object, though the walk is for a creation.
func (l *lowering) priorObject() operand {
	return valueOf(cel.Ident("oldObject"), l.objectType(l.target))
}
