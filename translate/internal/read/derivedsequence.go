package read

import (
	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/schema"
)

// Filtered is the elements that satisfy keep.
type Filtered struct {
	Of   Sequence
	Keep func(*Lowering, Operand) cel.Bool
	// NonNull tells that they are those of a list of unknown type that are not null.
	NonNull bool
}

// Quantify implements Sequence.
func (s Filtered) Quantify(l *Lowering, q cel.Quantifier, strict bool, body func(Operand) cel.Bool) cel.Bool {
	return s.Of.Quantify(l, q, strict, func(x Operand) cel.Bool {
		if q == cel.ForAll {
			return cel.Implies(s.Keep(l, x), body(x))
		}
		return cel.And(s.Keep(l, x), body(x))
	})
}

// Count implements Sequence.
func (s Filtered) Count(l *Lowering, strict bool) cel.Value {
	if list, ok := s.List(l, strict); ok {
		return list.Size()
	}
	return countBy(l, s, strict)
}

// List implements Sequence.
func (s Filtered) List(l *Lowering, strict bool) (cel.Value, bool) {
	src, ok := s.Of.List(l, strict)
	if !ok {
		return src, false
	}
	if one, ok := s.Of.(Single); ok { // which can be read only where it is kept
		return cel.Cond(s.Keep(l, one.J), src, cel.List()), true
	}
	kept := l.Binders.Filter(src, HintOf(s.Of), func(x cel.Value) cel.Bool { return s.Keep(l, ElementOf(s.Of, x)) })
	return kept, true
}

// Demands implements Sequence.
func (s Filtered) Demands(strict bool) Demands { return s.Of.Demands(strict) }

// Null implements Sequence.
func (s Filtered) Null() cel.Bool { return s.Of.Null() }

// Elem implements Sequence.
func (s Filtered) Elem() *schema.Type { return s.Of.Elem() }

// Ordered implements Sequence.
func (s Filtered) Ordered() bool { return s.Of.Ordered() }

// Origin implements Sequence.
func (s Filtered) Origin() origin { return s.Of.Origin() }

// Mapped is f of each element, without those for which it is missing or null.
type Mapped struct {
	L  *Lowering
	Of Sequence
	F  func(*Lowering, Operand) Operand
}

// Quantify implements Sequence.
func (s Mapped) Quantify(l *Lowering, q cel.Quantifier, strict bool, body func(Operand) cel.Bool) cel.Bool {
	return s.Of.Quantify(l, q, strict, func(x Operand) cel.Bool {
		y := s.F(l, x)
		found := Present(l, y)
		if q == cel.ForAll {
			return cel.Implies(found, body(y.Settled()))
		}
		return cel.And(found, body(y.Settled()))
	})
}

// Count implements Sequence.
func (s Mapped) Count(l *Lowering, strict bool) cel.Value {
	src, ok := s.Of.List(l, strict)
	if !ok {
		return countBy(l, s, strict)
	}
	return s.kept(l, src).Size()
}

func (s Mapped) kept(l *Lowering, src cel.Value) cel.Value {
	if p := Present(l, s.F(l, ElementOf(s.Of, cel.Ident("x")))); p.IsTrue() {
		return src
	}
	return l.Binders.Filter(src, HintOf(s.Of), func(x cel.Value) cel.Bool {
		return Present(l, s.F(l, ElementOf(s.Of, x)))
	})
}

// List implements Sequence.
func (s Mapped) List(l *Lowering, strict bool) (cel.Value, bool) {
	src, ok := s.Of.List(l, strict)
	if !ok {
		return src, false
	}
	good := true
	out := l.Binders.Map(s.kept(l, src), HintOf(s.Of), func(x cel.Value) cel.Value {
		y, ok := Expr(l, s.F(l, ElementOf(s.Of, x)).Settled()) // which is there, as kept has asked
		good = good && ok
		return y
	})
	return out, good
}

// Demands implements Sequence.
func (s Mapped) Demands(strict bool) Demands { return s.Of.Demands(strict) }

// Null implements Sequence.
func (s Mapped) Null() cel.Bool { return s.Of.Null() }

// Elem implements Sequence.
func (s Mapped) Elem() *schema.Type { return s.probe().Typ() }

// Ordered implements Sequence.
func (s Mapped) Ordered() bool { return s.Of.Ordered() && s.probe().ordered() }

// Origin implements Sequence.
func (s Mapped) Origin() origin { return s.probe().Origin() }

// probe is f of some element.
func (s Mapped) probe() Operand { return s.F(s.L, ElementOf(s.Of, cel.Ident("x"))) }

// Flat is the elements of the lists that f gives for each element, one after the
// other.
type Flat struct {
	L  *Lowering
	Of Sequence
	F  func(*Lowering, Operand) Sequence
}

// Quantify implements Sequence.
func (s Flat) Quantify(l *Lowering, q cel.Quantifier, strict bool, body func(Operand) cel.Bool) cel.Bool {
	return s.Of.Quantify(l, q, strict, func(x Operand) cel.Bool {
		return s.F(l, x).Quantify(l, q, false, body)
	})
}

// Count implements Sequence.
func (s Flat) Count(l *Lowering, strict bool) cel.Value { return countBy(l, s, strict) }

// List implements Sequence.
func (s Flat) List(l *Lowering, strict bool) (cel.Value, bool) {
	if !l.Release.Has("flatten") {
		return cel.Value{}, false
	}
	src, ok := s.Of.List(l, strict)
	if !ok {
		return src, false
	}
	good := true
	lists := l.Binders.Map(src, HintOf(s.Of), func(x cel.Value) cel.Value {
		inner, ok := s.F(l, ElementOf(s.Of, x)).List(l, false)
		good = good && ok
		return inner
	})
	return lists.Call(cel.FuncFlatten), good
}

// Demands implements Sequence.
func (s Flat) Demands(strict bool) Demands { return s.Of.Demands(strict) }

// Null implements Sequence.
func (s Flat) Null() cel.Bool { return s.Of.Null() }

// Elem implements Sequence.
func (s Flat) Elem() *schema.Type { return s.probe().Elem() }

// Ordered implements Sequence.
func (s Flat) Ordered() bool { return s.Of.Ordered() && s.probe().Ordered() }

// Origin implements Sequence.
func (s Flat) Origin() origin { return s.probe().Origin() }

// probe is f of some element.
func (s Flat) probe() Sequence { return s.F(s.L, ElementOf(s.Of, cel.Ident("x"))) }

// countBy adds up the counts of the parts of a nested sequence.
func countBy(l *Lowering, s Sequence, strict bool) cel.Value {
	var of Sequence
	var within func(l *Lowering, part Sequence) Sequence // s of a part of what it is of
	switch s := s.(type) {
	case Flat:
		if src, ok := s.Of.List(l, strict); ok {
			return l.Binders.Map(src, HintOf(s.Of), func(x cel.Value) cel.Value {
				return s.F(l, ElementOf(s.Of, x)).Count(l, false)
			}).Call(cel.FuncSum)
		}
		of, within = s.Of, func(l *Lowering, part Sequence) Sequence { return Flat{L: l, Of: part, F: s.F} }
	case Filtered:
		of, within = s.Of, func(_ *Lowering, part Sequence) Sequence { return Filtered{Of: part, Keep: s.Keep} }
	case Mapped:
		of, within = s.Of, func(l *Lowering, part Sequence) Sequence { return Mapped{L: l, Of: part, F: s.F} }
	}
	if outer, ok := of.(Flat); ok {
		return countBy(l, Flat{L: l, Of: outer.Of, F: func(l *Lowering, x Operand) Sequence { return within(l, outer.F(l, x)) }}, strict)
	}
	panic(l.Unsupported("counting the elements of this projection"))
}
