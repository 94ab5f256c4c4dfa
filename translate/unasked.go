package translate

import (
	"slices"
	"strings"

	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/policy"
)

// noteUnasked tells of deletions and connections that a rule can deny though it
// never speaks of them: one that lists no operations is asked about all four,
// where its author will have thought of writes.
func (l *lowering) noteUnasked(units []unit) {
	if mentions(l.rule.Source, func(s string) bool { return strings.Contains(s, "request.operation") }) {
		return
	}
	for _, op := range []string{"DELETE", "CONNECT"} {
		judged := slices.ContainsFunc(units, func(u unit) bool { return slices.Contains(u.ops, op) && !u.target.only(op) })
		asked := slices.ContainsFunc(filters(l.rule.Match), func(f *policy.Filter) bool { return slices.Contains(f.Operations, op) })
		if judged && !asked {
			l.at(l.rule.Match.Pos)
			l.note(diag.UnaskedOperation, "the rule lists no operations, so it is judged on %s too: %s; list operations in match, or convert with --operations create-update",
				op, l.unaskedConsequence(op))
		}
	}
}

// only tells whether an operation is all that can happen to the target: a rule
// that names it asks for that.
func (t target) only(op string) bool {
	return op == "CONNECT" && t.sub != "" && !strings.Contains(t.resource, "*") // exec, attach, proxy and their like
}

func (l *lowering) unaskedConsequence(op string) string {
	switch {
	case op == "CONNECT" && l.enforces():
		return "what connects to objects, as exec and proxy do, can be denied"
	case op == "CONNECT":
		return "what connects to objects, as exec and proxy do, is reported"
	case l.enforces():
		return "an object that violates it cannot be deleted"
	}
	return "the deletion of an object that violates it is reported"
}

// enforces tells whether a violation is denied anywhere.
func (l *lowering) enforces() bool {
	return l.action() == policy.Enforce || slices.ContainsFunc(overridesOf(l.policy, l.rule), func(o policy.ActionOverride) bool {
		return o.Action == policy.Enforce
	})
}
