package translate

import (
	"slices"

	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/translate/internal/native"
	"github.com/kvap/kvap/translate/internal/pack"
)

// excuse adds what excuses a violation: under Enforce, an update of an object
// that violated the rule already is admitted. Kyverno never excuses rules with
// preconditions, and judges the old object as if it were being created by nobody:
// where only a filter on users matches, the old object does not.
func (l *lowering) excuse(u *pack.Unit) {
	if !l.excusable() || !slices.Contains(u.Operations, native.Update) {
		return
	}
	w := l.walk(u.Target, []native.Operation{native.Create})
	now := l.environmentOf(u.Target, []native.Operation{native.Update})
	w.prior, w.now, w.notes = true, &now, nil
	w.variables, w.params = slices.Clone(u.Variables), u.Params // a name means one thing
	w.object = w.priorObject()
	w.old = litOf(map[string]any{})
	match := w.applies()
	if match.IsFalse() {
		return
	}
	violated := w.simplified(w.body(&pack.Unit{}).Not(), now)
	violated.Expr = w.fuse(violated.Expr)
	if violated.Expr.IsFalse() {
		return
	}
	alone := violated.Expr
	if p := l.rule.Validate.Pattern; p != nil {
		now, _ := w.ofNewObject().patternSubject()
		before, _ := w.patternSubject()
		violated.Expr = cel.And(w.noError(now, p), w.noError(before, p), violated.Expr)
	}
	if w.rule.Validate.ForEach != nil {
		violated.Expr = cel.And(w.failsFirstNow(), violated.Expr)
	}
	if !cel.Equal(violated.Expr.Value, alone.Value) {
		violated = w.simplified(violated, now)
	}
	u.Before = cel.And(match, violated.Expr)
	u.Exempt, u.Excused = u.Before, alwaysExcused(*u, match, violated.Expr)
	u.Variables, u.Params = w.variables, w.params
	if len(u.Operations) > 1 {
		update := cel.Ident("request").Field("operation").Eq(cel.String(string(native.Update)))
		u.Exempt = cel.And(update, u.Exempt)
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
	return native.BaseAction(l.policy, l.rule)
}

// priorObject is the old object, though the walk is for a creation.
func (l *lowering) priorObject() operand {
	return valueOf(cel.Ident("oldObject"), l.objectType(l.target))
}
