package rule

import (
	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/schema"
	"github.com/kvap/kvap/translate/internal/partial"
	"github.com/kvap/kvap/translate/internal/read"
)

// Kyverno goes through elements in order, and the first one that does not pass
// decides: a failure fails the rule, an error is the rule's. all() looks at every
// element, and lets a failure hide errors before it. That makes no difference where
// both are denied, but where failurePolicy Ignore admits what errs, and where a
// failure is excused: existing.go.

// elementsInOrder is every, what all() says of the elements of a foreach, which can be told apart as
// the first element that does not pass says. Where that is another thing it is said so.
func elementsInOrder(l *read.Lowering, f *policy.ForEach, list read.Operand, every partial.Bool, depth int) partial.Bool {
	if !every.Errs {
		return every
	}
	out := partial.ToldBy(every.Expr, func() partial.Apart {
		s := wholeList(l, list)
		if s == nil || !canTellApart(l, f) {
			panic(elementErrors(l))
		}
		if neverErrs(l, f, s, depth) { // its preconditions ask for what it reads
			return partial.ApartSure(every.Expr)
		}
		return firstDecides(l, f, s, depth)
	})
	if l.OfOld() || l.Policy.FailurePolicy != policy.Ignore {
		return out
	}
	apart, _ := out.Apart()
	if apart.Readable.IsTrue() {
		return partial.Sure(every.Expr)
	}
	fails := apart.Readable.Given(cel.Not(apart.Holds))
	return out.As(cel.CondBool(apart.Holds, cel.True(), cel.CondBool(fails, cel.False(), partial.Failing("element"))))
}

// firstDecides is what the first element that does not pass says.
func firstDecides(l *read.Lowering, f *policy.ForEach, s read.Sequence, depth int) partial.Apart {
	isBad := func(x read.Operand) cel.Bool { return cel.Not(elementApart(l, f, x, depth).Holds) }
	suffix := ""
	if l.OfOld() {
		suffix = "Before"
	}
	bad, ok := kept(l, s, isBad, suffix)
	if !ok { // it is no one list to CEL
		panic(elementErrors(l))
	}
	first, none := elementApart(l, f, read.ValueOf(bad.Index(cel.Int(0)), s.Elem()), depth), bad.Size().Eq(cel.Int(0))
	return partial.Apart{Holds: none, Fails: cel.And(cel.Not(none), first.Readable), Readable: cel.Or(none, first.Readable)}
}

// canTellApart tells whether an element of the foreach can be told apart: those that do not pass
// are kept in a variable, which stands outside of all loops.
func canTellApart(l *read.Lowering, f *policy.ForEach) bool {
	return f.ForEach == nil && l.Binders.Empty()
}

// neverErrs tells that no element is an error.
func neverErrs(l *read.Lowering, f *policy.ForEach, s read.Sequence, depth int) bool {
	return elementApart(l, f, read.ValueOf(cel.Ident("element"), s.Elem()), depth).Readable.IsTrue()
}

// kept is a variable with the elements of a list that satisfy keep; of a list of
// lists that CEL cannot flatten, those of the first one that has some.
func kept(l *read.Lowering, s read.Sequence, keep func(read.Operand) cel.Bool, suffix string) (cel.Value, bool) {
	name := read.Singular(read.HintOf(s))
	variable := "failing" + read.Capital(name) + "s" + suffix
	if items, ok := s.List(l, false); ok && s.Ordered() {
		return read.Let(l, variable, l.Binders.Filter(items, name, func(x cel.Value) cel.Bool { return keep(read.ValueOf(x, s.Elem())) })), true
	}
	outer, ok := s.(read.Flat)
	if !ok {
		return cel.Value{}, false
	}
	some := func(x read.Operand) cel.Bool { return outer.F(l, x).Quantify(l, cel.ForSome, false, keep) }
	around, ok := kept(l, outer.Of, some, "In"+suffix)
	if !ok {
		return cel.Value{}, false
	}
	inner := outer.F(l, read.ElementOf(outer.Of, around.Index(cel.Int(0))))
	items, ok := inner.List(l, false)
	if !ok || !inner.Ordered() {
		return cel.Value{}, false
	}
	items = cel.Cond(around.Size().Eq(cel.Int(0)), cel.List(), items)
	return read.Let(l, variable, l.Binders.Filter(items, name, func(x cel.Value) cel.Bool { return keep(read.ValueOf(x, s.Elem())) })), true
}

func elementErrors(l *read.Lowering) read.Refusal {
	if l.Policy.FailurePolicy != policy.Ignore {
		return l.Unsupported("a foreach whose elements may be errors, in a rule that excuses existing violations,")
	}
	return l.Unsupported("failurePolicy Ignore for a foreach whose elements may be errors")
}

// wholeList is a list of a known type of elements; nil for others.
func wholeList(l *read.Lowering, list read.Operand) read.Sequence {
	if list.Form == read.SequenceForm || list.Form == read.MultiForm || list.Form == read.PlaceForm && list.V.Kind() == schema.List {
		return read.AsSequence(l, list)
	}
	return nil
}

// elementApart is what an element says, told apart.
func elementApart(l *read.Lowering, f *policy.ForEach, elem read.Operand, depth int) partial.Apart {
	apart, ok := oneElement(l, f, elem, depth).Apart()
	if !ok {
		panic(elementErrors(l))
	}
	return apart
}
