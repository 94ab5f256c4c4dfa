package query

import (
	"slices"

	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/translate/internal/native"
	"github.com/kvap/kvap/translate/internal/read"
)

// Operations are the classes of operations that the rule is lowered for, creations
// and updates together at first. A rule whose check says nothing of a deletion is
// not asked about one (deviation 12).
func Operations(l *read.Lowering, t native.Target) [][]native.Operation {
	var writes []native.Operation
	var others [][]native.Operation
	for _, op := range t.PossibleOperations() {
		switch {
		case op == native.Delete && ignoresDeletion(l), !SomeFilterHas(l, op):
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
func ignoresDeletion(l *read.Lowering) bool {
	v := l.Rule.Validate
	if v.PodSecurity != nil {
		return true
	}
	return v.CEL == nil && v.Deny == nil && (v.Pattern != nil || v.AnyPattern != nil)
}

// SomeFilterHas tells that the match lets an operation through.
func SomeFilterHas(l *read.Lowering, op native.Operation) bool {
	return slices.ContainsFunc(Filters(l.Rule.Match), func(f *policy.Filter) bool {
		return len(f.Operations) == 0 || slices.Contains(f.Operations, string(op))
	})
}

func operation(l *read.Lowering) read.Operand {
	if l.OfOld() {
		return read.LitOf(string(native.Create))
	}
	return ofOneOperation(l, read.LitOf(string(l.Ops[0])))
}

// Filters are the filters of a block that count.
func Filters(m *policy.MatchBlock) []*policy.Filter {
	switch {
	case m == nil:
		return nil
	case len(m.Any) > 0:
		return m.Any
	case len(m.All) > 0:
		return m.All
	case m.Legacy != nil:
		return []*policy.Filter{m.Legacy}
	}
	return nil
}
