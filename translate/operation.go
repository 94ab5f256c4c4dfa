package translate

import (
	"slices"

	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/translate/internal/native"
)

// operations are the classes of operations that the rule is lowered for, creations
// and updates together at first. A rule whose check says nothing of a deletion is
// not asked about one (deviation 12).
func (l *lowering) operations(t native.Target) [][]native.Operation {
	var writes []native.Operation
	var others [][]native.Operation
	for _, op := range t.PossibleOperations() {
		switch {
		case op == native.Delete && l.ignoresDeletion(), !l.someFilterHas(op):
		case op == native.Create || op == native.Update:
			writes = append(writes, op)
		default:
			others = append(others, []native.Operation{op})
		}
	}
	if len(writes) == 0 {
		return others
	}
	return append([][]native.Operation{writes}, others...)
}

// ignoresDeletion tells whether the check is not evaluated on DELETE.
func (l *lowering) ignoresDeletion() bool {
	v := l.rule.Validate
	if v.PodSecurity != nil {
		return true
	}
	return v.CEL == nil && v.Deny == nil && (v.Pattern != nil || v.AnyPattern != nil)
}

func (l *lowering) someFilterHas(op native.Operation) bool {
	return slices.ContainsFunc(filters(l.rule.Match), func(f *policy.Filter) bool {
		return len(f.Operations) == 0 || slices.Contains(f.Operations, string(op))
	})
}

func (l *lowering) operation() operand {
	if l.prior {
		return litOf(string(native.Create))
	}
	return l.ofOneOperation(litOf(string(l.ops[0])))
}
