package read

import (
	"slices"

	"github.com/kvap/kvap/cel"
)

// The entries of a map have no order: CEL may go through them in another one each time,
// and so does Kyverno. Each sequence tells whether its elements have one. What is read
// from a map may be counted, searched and sorted; whatever depends on the order is
// left to the webhook.

// InOrder is a sequence as a list of which the order matters.
func InOrder(l *Lowering, s Sequence) (cel.Value, bool) {
	MustBeOrdered(l, SequenceOf(s))
	return s.List(l, false)
}

// MustBeOrdered refuses a list of which the order matters and is that of a map.
func MustBeOrdered(l *Lowering, j Operand) {
	if !j.ordered() {
		panic(l.Unsupported("the order of a map's keys or values"))
	}
}

// ordered tells that whatever lists j has in it are in order.
func (j Operand) ordered() bool {
	switch j.Form {
	case SequenceForm:
		return j.S.Ordered()
	case ChoiceForm:
		return j.Then.ordered() && j.Els.ordered()
	case MultiForm:
		return allOrdered(j.Multi)
	}
	return true
}

func allOrdered(parts []Operand) bool {
	return !slices.ContainsFunc(parts, func(j Operand) bool { return !j.ordered() })
}

// FromMap is a sequence in the order of a map, which is none.
type FromMap struct{ Sequence }

// Ordered implements Sequence.
func (FromMap) Ordered() bool { return false }
