package query

import (
	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/jmespath"
	"github.com/kvap/kvap/translate/internal/read"
)

// What a filter or a projection asks of an element may be an error, as a function of
// what the element lacks is. A single one makes the whole an error, whatever the
// other elements say; flattening reads it as null. && and exists() would hide it.

// withoutErrors is j, made of e of each element, and an error where e of some element
// is one.
func withoutErrors(l *read.Lowering, s read.Sequence, e *jmespath.Expr, j read.Operand) read.Operand {
	if !mayFail(e) {
		return j
	}
	null := read.LitOf(nil)
	safe := s.Quantify(l, cel.ForAll, false, func(x read.Operand) cel.Bool { return succeeds(l, e, &x) })
	if some := anyNull(l, s); !some.IsFalse() && !succeeds(l, e, &null).IsTrue() {
		safe = cel.And(cel.Not(some), safe)
	}
	return j.Demanding(read.Demand("", safe.Simplify()))
}

// anyNull is: null is among the elements, of which a sequence has none itself.
func anyNull(l *read.Lowering, s read.Sequence) cel.Bool {
	switch s := s.(type) {
	case read.Filtered:
		if s.NonNull {
			return s.Of.Quantify(l, cel.ForSome, false, func(x read.Operand) cel.Bool { return read.IsNull(x.V.Expr) })
		}
	case read.Flat:
		inner := s.Of.Quantify(l, cel.ForSome, false, func(x read.Operand) cel.Bool { return anyNull(l, s.F(l, x)) })
		return cel.Or(anyNull(l, s.Of), inner)
	case read.Concat:
		some := make([]cel.Bool, len(s))
		for i, part := range s {
			some[i] = anyNull(l, part)
		}
		return cel.Or(some...)
	case read.Branch:
		return cel.CondBool(s.C, anyNull(l, s.Then), anyNull(l, s.Els))
	}
	return cel.False()
}

// mayFail tells that an expression may be an error other than that of a missing key:
// it calls a function.
func mayFail(e *jmespath.Expr) bool { return hasOp(e, jmespath.Call) }

// hasOp tells that an expression has one of a kind in it.
func hasOp(e *jmespath.Expr, op jmespath.Op) bool {
	found := false
	jmespath.Walk(e, func(e *jmespath.Expr) bool {
		found = found || e.Op == op
		return !found
	})
	return found
}

// succeeds is: e of the current node is no error but that of a missing key.
func succeeds(l *read.Lowering, e *jmespath.Expr, cur *read.Operand) cel.Bool {
	quiet := l.Quietly()
	d, _ := read.DemandsOf(quiet, eval(quiet, e, cur).Softly())
	if d.Unsure {
		panic(l.Unsupported("an expression that may be an error where what it gives may not be needed"))
	}
	return d.All().Simplify()
}

// faultless is j where it is known to be no error.
func faultless(j read.Operand) read.Operand {
	if j.Form != read.ChoiceForm {
		return j
	}
	isError := func(j *read.Operand) bool { return j.Form == read.ErrorForm && j.Hard }
	switch {
	case isError(j.Els):
		return faultless(*j.Then)
	case isError(j.Then):
		return faultless(*j.Els)
	}
	return j.With(faultless(*j.Then), faultless(*j.Els))
}
