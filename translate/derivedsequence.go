package translate

import (
	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/schema"
)

// filtered is the elements that satisfy keep.
type filtered struct {
	of   sequence
	keep func(*lowering, operand) cel.Bool
}

func (s filtered) quantify(l *lowering, q cel.Quantifier, strict bool, body func(operand) cel.Bool) cel.Bool {
	return s.of.quantify(l, q, strict, func(x operand) cel.Bool {
		if q == cel.ForAll {
			return cel.Implies(s.keep(l, x), body(x))
		}
		return cel.And(s.keep(l, x), body(x))
	})
}

func (s filtered) count(l *lowering, strict bool) cel.Value {
	if list, ok := s.list(l, strict); ok {
		return list.Size()
	}
	return countBy(l, s, strict)
}

func (s filtered) list(l *lowering, strict bool) (cel.Value, bool) {
	src, ok := s.of.list(l, strict)
	if !ok {
		return src, false
	}
	if one, ok := s.of.(single); ok { // which can be read only where it is kept
		return cel.Cond(s.keep(l, one.j), src, cel.List()), true
	}
	kept := l.binders.Filter(src, hintOf(s.of), func(x cel.Value) cel.Bool { return s.keep(l, elementOf(s.of, x)) })
	return kept, true
}

func (s filtered) null() cel.Bool { return s.of.null() }

func (s filtered) elem() *schema.Type { return s.of.elem() }

func (s filtered) ordered() bool { return s.of.ordered() }

// nonNull is the elements of a list of unknown type that are not null.
type nonNull struct{ filtered }

// mapped is f of each element, without those for which it is missing or null.
type mapped struct {
	l  *lowering
	of sequence
	f  func(*lowering, operand) operand
}

func (s mapped) quantify(l *lowering, q cel.Quantifier, strict bool, body func(operand) cel.Bool) cel.Bool {
	return s.of.quantify(l, q, strict, func(x operand) cel.Bool {
		y := s.f(l, x)
		found := l.present(y)
		if q == cel.ForAll {
			return cel.Implies(found, body(y.settled()))
		}
		return cel.And(found, body(y.settled()))
	})
}

func (s mapped) count(l *lowering, strict bool) cel.Value {
	src, ok := s.of.list(l, strict)
	if !ok {
		return countBy(l, s, strict)
	}
	return s.kept(l, src).Size()
}

func (s mapped) kept(l *lowering, src cel.Value) cel.Value {
	if p := l.present(s.f(l, elementOf(s.of, cel.Ident("x")))); p.IsTrue() {
		return src
	}
	return l.binders.Filter(src, hintOf(s.of), func(x cel.Value) cel.Bool {
		return l.present(s.f(l, elementOf(s.of, x)))
	})
}

func (s mapped) list(l *lowering, strict bool) (cel.Value, bool) {
	src, ok := s.of.list(l, strict)
	if !ok {
		return src, false
	}
	good := true
	out := l.binders.Map(s.kept(l, src), hintOf(s.of), func(x cel.Value) cel.Value {
		var y cel.Value
		l.collected(func() { // which kept has asked for
			var ok bool
			y, ok = l.expr(s.f(l, elementOf(s.of, x)).settled())
			good = good && ok
		})
		return y
	})
	return out, good
}

func (s mapped) null() cel.Bool { return s.of.null() }

func (s mapped) elem() *schema.Type {
	return s.probe().typ()
}

func (s mapped) ordered() bool { return s.of.ordered() && s.probe().ordered() }

// probe is f of some element.
func (s mapped) probe() operand { return s.f(s.l, elementOf(s.of, cel.Ident("x"))) }

// flat is the elements of the lists that f gives for each element, one after the
// other.
type flat struct {
	l  *lowering
	of sequence
	f  func(*lowering, operand) sequence
}

func (s flat) quantify(l *lowering, q cel.Quantifier, strict bool, body func(operand) cel.Bool) cel.Bool {
	return s.of.quantify(l, q, strict, func(x operand) cel.Bool {
		return s.f(l, x).quantify(l, q, false, body)
	})
}

func (s flat) count(l *lowering, strict bool) cel.Value { return countBy(l, s, strict) }

func (s flat) list(l *lowering, strict bool) (cel.Value, bool) {
	if !l.release.Has("flatten") {
		return cel.Value{}, false
	}
	src, ok := s.of.list(l, strict)
	if !ok {
		return src, false
	}
	good := true
	lists := l.binders.Map(src, hintOf(s.of), func(x cel.Value) cel.Value {
		inner, ok := s.f(l, elementOf(s.of, x)).list(l, false)
		good = good && ok
		return inner
	})
	return lists.Call(cel.FuncFlatten), good
}

func (s flat) null() cel.Bool { return s.of.null() }

func (s flat) elem() *schema.Type {
	return s.probe().elem()
}

func (s flat) ordered() bool { return s.of.ordered() && s.probe().ordered() }

// probe is f of some element.
func (s flat) probe() sequence { return s.f(s.l, elementOf(s.of, cel.Ident("x"))) }

// countBy adds up the counts of the parts of a nested sequence.
func countBy(l *lowering, s sequence, strict bool) cel.Value {
	switch s := s.(type) {
	case flat:
		if src, ok := s.of.list(l, strict); ok {
			return l.binders.Map(src, hintOf(s.of), func(x cel.Value) cel.Value {
				return s.f(l, elementOf(s.of, x)).count(l, false)
			}).Call(cel.FuncSum)
		}
		if outer, ok := s.of.(flat); ok {
			inner := flat{l: l, of: outer.of, f: func(l *lowering, x operand) sequence { return flat{l: l, of: outer.f(l, x), f: s.f} }}
			return countBy(l, inner, strict)
		}
	case filtered:
		if outer, ok := s.of.(flat); ok {
			inner := flat{l: l, of: outer.of, f: func(l *lowering, x operand) sequence { return filtered{of: outer.f(l, x), keep: s.keep} }}
			return countBy(l, inner, strict)
		}
	case mapped:
		if outer, ok := s.of.(flat); ok {
			inner := flat{l: l, of: outer.of, f: func(l *lowering, x operand) sequence { return mapped{l: l, of: outer.f(l, x), f: s.f} }}
			return countBy(l, inner, strict)
		}
	}
	panic(l.unsupported("counting the elements of this projection"))
}
