package translate

import (
	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/jmespath"
	"github.com/kvap/kvap/schema"
)

// slice is j[start:stop], which is null of what is no list. CEL selects by index
// from 1.33 on.
func (l *lowering) slice(j operand, e *jmespath.Expr) operand {
	if e.Step != nil && *e.Step != 1 {
		panic(l.unsupported("a slice with a step"))
	}
	var s sequence
	switch j.form {
	case sequenceForm, multiForm:
		s = l.sequence(j)
	case placeForm:
		switch {
		case j.v.never:
		case j.v.kind() == schema.List:
			s = listOf{v: j.v, hint: l.hint(j.v)}
		case j.v.dynamic():
			s = listOf{v: j.v.asList(), hint: l.hint(j.v)}
		}
	case errorForm:
		return j
	case litForm:
		panic(l.unsupported("a slice of a literal"))
	}
	if s == nil {
		return litOf(nil)
	}
	l.mustBeOrdered(sequenceOf(s))
	if !cel.Release(l.release).Supports(cel.FirstRelease("transformList", 4)) {
		panic(l.refuse(diag.NeedsNewer, "a slice needs Kubernetes 1.33"))
	}
	return sequenceOf(sliced{of: s, start: e.Start, stop: e.Stop})
}

// sliced is the elements from start up to stop; negative ones count from the end.
type sliced struct {
	of          sequence
	start, stop *int
}

func (s sliced) list(l *lowering, strict bool) (cel.Value, bool) {
	src, ok := s.of.list(l, strict)
	if !ok {
		return src, false
	}
	i, release := l.binders.Bind("i")
	defer release()
	x, release := l.binders.Bind(hintOf(s.of))
	defer release()
	bound := func(n int) cel.Value {
		if n < 0 {
			return src.Size().Binary(cel.Minus, cel.Int(int64(-n)))
		}
		return cel.Int(int64(n))
	}
	keep := cel.True()
	if s.start != nil && *s.start != 0 {
		keep = cel.And(keep, i.Compare(cel.GreaterEqual, bound(*s.start)))
	}
	if s.stop != nil {
		keep = cel.And(keep, i.Compare(cel.Less, bound(*s.stop)))
	}
	if kindOf(s.of.elem()) == schema.Any { // a projection drops nulls
		keep = cel.And(keep, cel.Not(isNull(x)))
	}
	if keep.IsTrue() {
		return src, true
	}
	return src.IndexedMacro(cel.MacroTransformList, i, x, keep.Value, x), true
}

func (s sliced) quantify(l *lowering, q cel.Quantifier, strict bool, body func(operand) cel.Bool) cel.Bool {
	list, ok := s.list(l, strict)
	if !ok {
		panic(l.unsupported("a slice of a nested projection, before Kubernetes 1.35"))
	}
	return l.binders.Quantify(q, list, hintOf(s.of), func(x cel.Value) cel.Bool {
		return body(elementOf(s.of, x))
	})
}

func (s sliced) count(l *lowering, strict bool) cel.Value {
	list, ok := s.list(l, strict)
	if !ok {
		panic(l.unsupported("a slice of a nested projection, before Kubernetes 1.35"))
	}
	return list.Size()
}

func (s sliced) null() cel.Bool { return s.of.null() }

func (s sliced) elem() *schema.Type { return s.of.elem() }

func (s sliced) ordered() bool { return s.of.ordered() }
