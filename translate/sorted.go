package translate

import (
	"github.com/kvap/kvap/cel"
)

// sortedSequence is a list that was sorted. CEL sorts from 1.35 on; before, it can
// only be compared with another sorted list.
type sortedSequence struct{ sequence }

func (s sortedSequence) list(l *lowering, strict bool) (cel.Value, bool) {
	v, ok := s.sequence.list(l, strict)
	if !ok || !l.release.Has("sort") {
		return cel.Value{}, false
	}
	return v.Call(cel.FuncSort), true
}

func (s sortedSequence) ordered() bool { return true }

// sameElements is: two sorted lists are equal, which is when both have each
// element as often as the other.
func (l *lowering) sameElements(a, b sequence) cel.Bool {
	x, ok := a.list(l, true)
	y, ok2 := b.list(l, true)
	if !ok || !ok2 {
		return l.sameByCount(a, b)
	}
	counts := l.binders.All(x, "item", func(e cel.Value) cel.Bool {
		equal := func(list cel.Value) cel.Value {
			return l.binders.Filter(list, "other", func(o cel.Value) cel.Bool { return o.Eq(e) }).Size()
		}
		return equal(x).Eq(equal(y))
	})
	return cel.And(x.Size().Eq(y.Size()), counts)
}

// sameByCount is sameElements of nested projections.
func (l *lowering) sameByCount(a, b sequence) cel.Bool {
	counts := a.quantify(l, cel.ForAll, true, func(x operand) cel.Bool {
		of := func(s sequence) cel.Value {
			return filtered{of: s, keep: func(l *lowering, y operand) cel.Bool { return l.equalValues(x, y) }}.count(l, true)
		}
		return of(a).Eq(of(b))
	})
	return cel.And(a.count(l, true).Eq(b.count(l, true)), counts)
}
