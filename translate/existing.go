package translate

import (
	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/policy"
)

// excuse adds what excuses a violation: under Enforce, an update of an object
// that violated the rule already is admitted. Kyverno never excuses rules with
// preconditions and rules that match users, and judges the old object as if it
// were being created.
func (l *lowering) excuse(u *unit) {
	if !l.excusable() || !contains(u.ops, "UPDATE") {
		return
	}
	w := l.walk(u.target, []string{"CREATE"})
	w.prior, w.notes = true, nil
	w.object = w.old2()
	w.old = litOf(map[string]any{})
	match := w.applies()
	if match.IsFalse() {
		return
	}
	violated := w.body(&unit{}).not()
	if violated.b.IsFalse() {
		return
	}
	u.exempt = cel.And(match, violated.b)
	if len(u.ops) > 1 {
		u.exempt = cel.And(cel.Ident("oldObject").Ne(cel.Null()), u.exempt)
	}
}

func (l *lowering) excusable() bool {
	v := l.rule.Validate
	return l.opts.Existing != DenyExisting && l.action() == policy.Enforce && v.AllowExisting && v.CEL == nil &&
		l.rule.Preconditions == nil && !matchesUser(l.rule.Match)
}

// action is the rule's own action; overrides do not count for excuses.
func (l *lowering) action() policy.Action {
	if a := l.rule.Validate.Action; a != "" {
		return a
	}
	return l.policy.Action
}

// old2 is the old object as a root, though the walk is for a creation.
func (l *lowering) old2() jval { return valOf(at(cel.Ident("oldObject"), l.rootType(l.target))) }

func contains(list []string, s string) bool {
	for _, x := range list {
		if x == s {
			return true
		}
	}
	return false
}
