package rule

import (
	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/schema"
	"github.com/kvap/kvap/translate/internal/condition"
	"github.com/kvap/kvap/translate/internal/native"
	"github.com/kvap/kvap/translate/internal/partial"
	"github.com/kvap/kvap/translate/internal/read"
)

// Kyverno goes through elements in order, and the first one that does not pass
// decides: a failure fails the rule, an error is the rule's. all() looks at every
// element, and lets a failure hide errors before it. That makes no difference where
// both are denied, but where failurePolicy Ignore admits what errs, and where a
// failure is excused: entryorder.go.

// ordered is out, what all() says of the elements of a foreach, or what the first
// element that does not pass says where that is another thing.
func ordered(l *read.Lowering, f *policy.ForEach, list read.Operand, out native.Truth, depth int) native.Truth {
	if list.Form == read.ErrorForm || l.Prior || !out.Errs || l.Policy.FailurePolicy != policy.Ignore {
		return out
	}
	s := wholeList(l, list)
	if s == nil || !knownParts(l, f) {
		panic(elementErrors(l))
	}
	bad, readable, ok := firstBad(l, f, s, "", depth)
	if !ok {
		panic(elementErrors(l))
	}
	return native.MayErr(cel.CondBool(bad.Size().Eq(cel.Int(0)), cel.True(),
		cel.CondBool(readable, cel.False(), partial.Failing("element"))))
}

// knownParts tells whether elementParts can say what an element of the foreach says.
func knownParts(l *read.Lowering, f *policy.ForEach) bool {
	return f.ForEach == nil && l.Binders.Empty()
}

// neverErrs tells that no element is an error.
func neverErrs(l *read.Lowering, f *policy.ForEach, s read.Sequence, depth int) bool {
	readable, _ := elementParts(l, f, read.ValueOf(cel.Ident("element"), s.Elem()), depth)
	return readable.IsTrue()
}

// firstBad is the elements that do not pass, as a variable, and whether the first of
// them is no error.
func firstBad(l *read.Lowering, f *policy.ForEach, s read.Sequence, suffix string, depth int) (bad cel.Value, readable cel.Bool, ok bool) {
	isBad := func(x read.Operand) cel.Bool {
		readable, holds := elementParts(l, f, x, depth)
		return cel.Not(cel.And(readable, holds))
	}
	bad, ok = kept(l, s, isBad, suffix)
	if ok {
		readable, _ = elementParts(l, f, read.ValueOf(bad.Index(cel.Int(0)), s.Elem()), depth)
	}
	return bad, readable, ok
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

// elementParts is what an element says in two parts that are no errors: whether it
// is none, and whether it passes then.
func elementParts(l *read.Lowering, f *policy.ForEach, elem read.Operand, depth int) (readable, holds cel.Bool) {
	l = l.Inside()
	Enter(l, f, elem, depth)
	pre := condition.PreOfElement(l, f.Preconditions)
	readable, holds = bodyParts(l, f, elem, depth)
	if implied := cel.And(pre.Expr, readable).Simplify(); cel.Equal(implied.Value, pre.Expr.Simplify().Value) {
		readable = cel.True()
	}
	readable, holds = cel.Implies(pre.Expr, readable), cel.Implies(pre.Expr, holds)
	if f.ElementScope != nil && *f.ElementScope {
		readable = cel.And(isMapped(elem), readable)
	}
	return readable, holds
}

// bodyParts is elementParts of what an entry checks.
func bodyParts(l *read.Lowering, f *policy.ForEach, elem read.Operand, depth int) (readable, holds cel.Bool) {
	if f.Deny != nil {
		l.SetPos(f.Deny.Pos)
		denied := condition.TotalConditions(l, f.Deny.Conditions)
		return denied.Read(), cel.Not(denied.Holds)
	}
	t := elementBody(l, f, elem, depth)
	if t.Errs {
		panic(elementErrors(l))
	}
	return cel.True(), t.Expr
}
