package translate

import (
	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/jmespath"
)

// What a filter or a projection asks of an element may be an error, as a function of
// what the element lacks is. A single one makes the whole an error, whatever the
// other elements say; flattening reads it as null. && and exists() would hide it.

// withoutErrors is j, made of e of each element, and an error where e of some element
// is one.
func (l *lowering) withoutErrors(s sequence, e *jmespath.Expr, j operand) operand {
	if !mayFail(e) {
		return j
	}
	null := litOf(nil)
	safe := s.quantify(l, cel.ForAll, false, func(x operand) cel.Bool { return l.succeeds(e, &x) })
	if some := l.anyNull(s); !some.IsFalse() && !l.succeeds(e, &null).IsTrue() {
		safe = cel.And(cel.Not(some), safe)
	}
	l.need(safe.Simplify())
	return j
}

// anyNull is: null is among the elements, of which a sequence has none itself.
func (l *lowering) anyNull(s sequence) cel.Bool {
	switch s := s.(type) {
	case nonNull:
		return s.of.quantify(l, cel.ForSome, false, func(x operand) cel.Bool { return isNull(x.v.expr) })
	case flat:
		inner := s.of.quantify(l, cel.ForSome, false, func(x operand) cel.Bool { return l.anyNull(s.f(l, x)) })
		return cel.Or(l.anyNull(s.of), inner)
	case concat:
		some := make([]cel.Bool, len(s))
		for i, part := range s {
			some[i] = l.anyNull(part)
		}
		return cel.Or(some...)
	case branch:
		return cel.CondBool(s.c, l.anyNull(s.then), l.anyNull(s.els))
	}
	return cel.False()
}

// mayFail tells that an expression may be an error other than that of a missing key:
// it calls a function.
func mayFail(e *jmespath.Expr) bool {
	found := false
	jmespath.Walk(e, func(e *jmespath.Expr) bool {
		found = found || e.Op == jmespath.Call
		return !found
	})
	return found
}

// succeeds is: e of the current node is no error but that of a missing key.
func (l *lowering) succeeds(e *jmespath.Expr, cur *operand) cel.Bool {
	n := l.silently(func() { l.ask(l.eval(e, cur).softly()) })
	if n.unsure {
		panic(l.unsupported("an expression that may be an error where what it gives may not be needed"))
	}
	return n.all().Simplify()
}

// faultless is j where it is known to be no error.
func faultless(j operand) operand {
	if j.form != choiceForm {
		return j
	}
	isError := func(j *operand) bool { return j.form == errorForm && j.hard }
	switch {
	case isError(j.els):
		return faultless(*j.then)
	case isError(j.then):
		return faultless(*j.els)
	}
	return j.with(faultless(*j.then), faultless(*j.els))
}
