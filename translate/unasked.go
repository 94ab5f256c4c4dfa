package translate

import (
	"slices"

	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/translate/internal/native"
	"github.com/kvap/kvap/translate/internal/pack"
)

// noteUnasked tells of deletions and connections that a rule can deny though it
// never speaks of them: one that lists no operations is asked about all four,
// where its author will have thought of writes.
func (l *lowering) noteUnasked(units []pack.Unit) {
	if l.rule.AsksForOperation(cel.ReadsField) {
		return
	}
	for _, op := range []native.Operation{native.Delete, native.Connect} {
		judged := slices.ContainsFunc(units, func(u pack.Unit) bool { return slices.Contains(u.Operations, op) && !l.namesPart(u.Target) })
		asked := slices.ContainsFunc(filters(l.rule.Match), func(f *policy.Filter) bool { return slices.Contains(f.Operations, string(op)) })
		if judged && !asked {
			*l.notes = append(*l.notes, l.unasked(op))
		}
	}
}

// unasked matters most where the operation can be denied.
func (l *lowering) unasked(op native.Operation) diag.Diagnostic {
	tell, consequence := diag.Notef, "a violation is reported when the object is deleted"
	if op == native.Connect {
		consequence = "what connects to objects, as exec and proxy do, is reported"
	}
	if l.enforces() {
		tell, consequence = diag.Warnf, "an object that violates it cannot be deleted"
		if op == native.Connect {
			consequence = "what connects to objects, as exec and proxy do, can be denied"
		}
	}
	return tell(l.rule.Pos, diag.UnaskedOperation, "the rule lists no operations, so it is judged on %s too: %s; "+
		"list operations in match, or convert with --operations create-update", op, consequence)
}

// namesPart tells of a subresource that the rule names, as exec: it has operations
// of its own, and who names it asks for them.
func (l *lowering) namesPart(t native.Target) bool {
	return t.Subresource != "" && slices.ContainsFunc(filters(l.rule.Match), func(f *policy.Filter) bool {
		return slices.ContainsFunc(f.Kinds, func(k policy.Text) bool {
			sel, ok := policy.ParseKind(k.Value)
			return ok && sel.Subresource == t.Subresource
		})
	})
}

// enforces tells whether a violation is denied anywhere.
func (l *lowering) enforces() bool {
	return l.action() == policy.Enforce || slices.ContainsFunc(native.OverridesOf(l.policy, l.rule), func(o policy.ActionOverride) bool {
		return o.Action == policy.Enforce
	})
}
