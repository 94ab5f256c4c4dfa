package match

import (
	"slices"

	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/translate/internal/native"
	"github.com/kvap/kvap/translate/internal/pack"
	"github.com/kvap/kvap/translate/internal/query"
	"github.com/kvap/kvap/translate/internal/read"
)

// NoteUnasked tells of deletions and connections that a rule can deny though it
// never speaks of them: one that lists no operations is asked about all four,
// where its author will have thought of writes.
func NoteUnasked(l *read.Lowering, units []pack.Unit) {
	if l.Rule.AsksForOperation(cel.ReadsField) {
		return
	}
	for _, op := range []native.Operation{native.Delete, native.Connect} {
		judged := slices.ContainsFunc(units, func(u pack.Unit) bool { return slices.Contains(u.Operations, op) && !namesPart(l, u.Target) })
		asked := slices.ContainsFunc(query.Filters(l.Rule.Match), func(f *policy.Filter) bool { return slices.Contains(f.Operations, string(op)) })
		if judged && !asked {
			*l.Notes = append(*l.Notes, unasked(l, op))
		}
	}
}

// unasked matters most where the operation can be denied.
func unasked(l *read.Lowering, op native.Operation) diag.Diagnostic {
	tell, consequence := diag.Notef, "a violation is reported when the object is deleted"
	if op == native.Connect {
		consequence = "what connects to objects, as exec and proxy do, is reported"
	}
	if enforces(l) {
		tell, consequence = diag.Warnf, "an object that violates it cannot be deleted"
		if op == native.Connect {
			consequence = "what connects to objects, as exec and proxy do, can be denied"
		}
	}
	return tell(l.Rule.Pos, diag.UnaskedOperation, "the rule lists no operations, so it is judged on %s too: %s; "+
		"list operations in match, or convert with --operations create-update", op, consequence)
}

// namesPart tells of a subresource that the rule names, as exec: it has operations
// of its own, and who names it asks for them.
func namesPart(l *read.Lowering, t native.Target) bool {
	return t.Subresource != "" && slices.ContainsFunc(query.Filters(l.Rule.Match), func(f *policy.Filter) bool {
		return slices.ContainsFunc(f.Kinds, func(k policy.Text) bool {
			sel, ok := policy.ParseKind(k.Value)
			return ok && sel.Subresource == t.Subresource
		})
	})
}

// enforces tells whether a violation is denied anywhere.
func enforces(l *read.Lowering) bool {
	return read.Action(l) == policy.Enforce || slices.ContainsFunc(native.OverridesOf(l.Policy, l.Rule), func(o policy.ActionOverride) bool {
		return o.Action == policy.Enforce
	})
}
