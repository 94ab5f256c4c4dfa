package translate

import (
	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/schema"
	"github.com/kvap/kvap/translate/internal/native"
	"github.com/kvap/kvap/translate/internal/partial"
)

// Kyverno goes through elements in order, and the first one that does not pass
// decides: a failure fails the rule, an error is the rule's. all() looks at every
// element, and lets a failure hide errors before it. That makes no difference where
// both are denied, but where failurePolicy Ignore admits what errs, and where a
// failure is excused: entryorder.go.

// ordered is out, what all() says of the elements of a foreach, or what the first
// element that does not pass says where that is another thing.
func (l *lowering) ordered(f *policy.ForEach, list operand, out native.Truth, depth int) native.Truth {
	switch {
	case list.form == errorForm || l.prior:
		return out
	case !out.Errs || l.policy.FailurePolicy != policy.Ignore:
		return out
	}
	s := l.wholeList(list)
	if s == nil || !l.knownParts(f) {
		panic(l.elementErrors())
	}
	bad, read, ok := l.firstBad(f, s, "", depth)
	if !ok {
		panic(l.elementErrors())
	}
	return native.MayErr(cel.CondBool(bad.Size().Eq(cel.Int(0)), cel.True(),
		cel.CondBool(read, cel.False(), partial.Failing("element"))))
}

// knownParts tells whether elementParts can say what an element of the foreach says.
func (l *lowering) knownParts(f *policy.ForEach) bool {
	return f.ForEach == nil && l.binders.Empty()
}

// neverErrs tells that no element is an error.
func (l *lowering) neverErrs(f *policy.ForEach, s sequence, depth int) bool {
	read, _ := l.elementParts(f, valueOf(cel.Ident("element"), s.elem()), depth)
	return read.IsTrue()
}

// firstBad is the elements that do not pass, as a variable, and whether the first of
// them is no error.
func (l *lowering) firstBad(f *policy.ForEach, s sequence, suffix string, depth int) (bad cel.Value, read cel.Bool, ok bool) {
	isBad := func(x operand) cel.Bool {
		read, holds := l.elementParts(f, x, depth)
		return cel.Not(cel.And(read, holds))
	}
	bad, ok = l.kept(s, isBad, suffix)
	if ok {
		read, _ = l.elementParts(f, valueOf(bad.Index(cel.Int(0)), s.elem()), depth)
	}
	return bad, read, ok
}

// kept is a variable with the elements of a list that satisfy keep; of a list of
// lists that CEL cannot flatten, those of the first one that has some.
func (l *lowering) kept(s sequence, keep func(operand) cel.Bool, suffix string) (cel.Value, bool) {
	name := singular(hintOf(s))
	variable := "failing" + capital(name) + "s" + suffix
	if items, ok := s.list(l, false); ok && s.ordered() {
		return l.let(variable, l.binders.Filter(items, name, func(x cel.Value) cel.Bool { return keep(valueOf(x, s.elem())) })), true
	}
	outer, ok := s.(flat)
	if !ok {
		return cel.Value{}, false
	}
	some := func(x operand) cel.Bool { return outer.f(l, x).quantify(l, cel.ForSome, false, keep) }
	around, ok := l.kept(outer.of, some, "In"+suffix)
	if !ok {
		return cel.Value{}, false
	}
	inner := outer.f(l, elementOf(outer.of, around.Index(cel.Int(0))))
	items, ok := inner.list(l, false)
	if !ok || !inner.ordered() {
		return cel.Value{}, false
	}
	items = cel.Cond(around.Size().Eq(cel.Int(0)), cel.List(), items)
	return l.let(variable, l.binders.Filter(items, name, func(x cel.Value) cel.Bool { return keep(valueOf(x, s.elem())) })), true
}

func (l *lowering) elementErrors() refusal {
	if l.policy.FailurePolicy != policy.Ignore {
		return l.unsupported("a foreach whose elements may be errors, in a rule that excuses existing violations,")
	}
	return l.unsupported("failurePolicy Ignore for a foreach whose elements may be errors")
}

// wholeList is a list of a known type of elements; nil for others.
func (l *lowering) wholeList(list operand) sequence {
	switch {
	case list.form == placeForm && list.v.kind() == schema.List:
		return l.sequence(list)
	case list.form == sequenceForm || list.form == multiForm:
		return l.sequence(list)
	}
	return nil
}

// elementParts is what an element says in two parts that are no errors: whether it
// is none, and whether it passes then.
func (l *lowering) elementParts(f *policy.ForEach, elem operand, depth int) (read, holds cel.Bool) {
	defer l.restore(l.environment)
	defer l.setPos(l.pos)
	l.enter(f, elem, depth)
	pre := l.preOfElement(f.Preconditions)
	read, holds = l.bodyParts(f, elem, depth)
	if implied := cel.And(pre.Expr, read).Simplify(); cel.Equal(implied.Value, pre.Expr.Simplify().Value) {
		read = cel.True()
	}
	read, holds = cel.Implies(pre.Expr, read), cel.Implies(pre.Expr, holds)
	if f.ElementScope != nil && *f.ElementScope {
		read = cel.And(isMapped(elem), read)
	}
	return read, holds
}

// bodyParts is elementParts of what an entry checks.
func (l *lowering) bodyParts(f *policy.ForEach, elem operand, depth int) (read, holds cel.Bool) {
	if f.Deny != nil {
		l.setPos(f.Deny.Pos)
		denied := l.totalConditions(f.Deny.Conditions)
		return denied.Read(), cel.Not(denied.Holds)
	}
	t := l.elementBody(f, elem, depth)
	if t.Errs {
		panic(l.elementErrors())
	}
	return cel.True(), t.Expr
}
