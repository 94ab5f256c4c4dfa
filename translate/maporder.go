package translate

import (
	"slices"

	"github.com/kvap/kvap/cel"
)

// The entries of a map have no order: CEL may go through them in another one each time,
// and so does Kyverno. Each sequence tells whether its elements have one. What is read
// from a map may be counted, searched and sorted; whatever depends on the order is
// left to the webhook.

// inOrder is a sequence as a list of which the order matters.
func (l *lowering) inOrder(s sequence) (cel.Value, bool) {
	l.mustBeOrdered(sequenceOf(s))
	return s.list(l, false)
}

// mustBeOrdered refuses a list of which the order matters and is that of a map.
func (l *lowering) mustBeOrdered(j operand) {
	if !j.ordered() {
		panic(l.unsupported("the order of a map's keys or values"))
	}
}

// ordered tells that whatever lists j has in it are in order.
func (j operand) ordered() bool {
	switch j.form {
	case sequenceForm:
		return j.s.ordered()
	case choiceForm:
		return j.then.ordered() && j.els.ordered()
	case multiForm:
		return allOrdered(j.multi)
	}
	return true
}

func allOrdered(parts []operand) bool {
	return !slices.ContainsFunc(parts, func(j operand) bool { return !j.ordered() })
}

// fromMap is a sequence in the order of a map, which is none.
type fromMap struct{ sequence }

func (fromMap) ordered() bool { return false }
