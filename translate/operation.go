package translate

import (
	"slices"

	"github.com/kvap/kvap/policy"
)

// An operation is what a request does to an object.
type operation string

// The operations.
const (
	opCreate  operation = "CREATE"
	opUpdate  operation = "UPDATE"
	opDelete  operation = "DELETE"
	opConnect operation = "CONNECT"
)

// operations are the classes of operations that the rule is lowered for, creations
// and updates together at first. A rule whose check says nothing of a deletion is
// not asked about one (deviation 12).
func (l *lowering) operations(t target) [][]operation {
	var writes []operation
	var others [][]operation
	for _, op := range t.ops() {
		switch {
		case op == opDelete && l.ignoresDeletion(), !l.someFilterHas(op):
		case op == opCreate || op == opUpdate:
			writes = append(writes, op)
		default:
			others = append(others, []operation{op})
		}
	}
	if len(writes) == 0 {
		return others
	}
	return append([][]operation{writes}, others...)
}

// ignoresDeletion tells whether the check is not evaluated on DELETE.
func (l *lowering) ignoresDeletion() bool {
	v := l.rule.Validate
	if v.PodSecurity != nil {
		return true
	}
	return v.CEL == nil && v.Deny == nil && (v.Pattern != nil || v.AnyPattern != nil)
}

func (l *lowering) someFilterHas(op operation) bool {
	return slices.ContainsFunc(filters(l.rule.Match), func(f *policy.Filter) bool {
		return len(f.Operations) == 0 || slices.Contains(f.Operations, string(op))
	})
}

func (l *lowering) operation() operand {
	if l.prior {
		return litOf(string(opCreate))
	}
	return l.ofOneOperation(litOf(string(l.ops[0])))
}
