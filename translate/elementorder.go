package translate

import (
	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/jmespath"
	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/schema"
)

// Kyverno goes through elements in order, and the first one that does not pass
// decides: a failure fails the rule, an error is the rule's. all() looks at every
// element, and lets a failure hide errors before it. That makes no difference where
// both are denied, but where failurePolicy Ignore admits what errs.

// ordered is out, what all() says of the elements of a foreach, or what the first
// element that does not pass says where that is another thing.
func (l *lowering) ordered(f *policy.ForEach, list operand, out truthValue, depth int) truthValue {
	switch {
	case l.found != nil || list.form == errorForm:
		return out
	case l.prior:
		return l.orderedBefore(f, list, out, depth)
	case !out.errs || l.policy.FailurePolicy != policy.Ignore:
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
	return truthValue{cel.CondBool(bad.Size().Eq(cel.Int(0)), cel.True(),
		cel.CondBool(read, cel.False(), l.failing(operand{hint: "element"}))), true}
}

// orderedBefore is ordered for the old object: an error before the first failure is
// no violation.
func (l *lowering) orderedBefore(f *policy.ForEach, list operand, out truthValue, depth int) truthValue {
	s := l.wholeList(list)
	dynamic := s == nil && list.form == placeForm && list.v.dynamic() && !list.v.never
	if dynamic {
		s = l.sequence(list)
	}
	if s == nil || !l.knownParts(f) || l.neverErrs(f, s, depth) {
		return out
	}
	bad, read, ok := l.firstBad(f, s, "Before", depth)
	if !ok {
		return out
	}
	holds := cel.Or(bad.Size().Eq(cel.Int(0)), cel.Not(read))
	if dynamic {
		holds = cel.CondBool(cel.And(list.v.found(), isList(list.v.expr)), holds, out.b)
	}
	return truthValue{b: holds}
}

// failsFirst is: the first element of the new object that does not pass is a failure
// and no error, which nothing excuses. It is asked where some element fails, and is
// true where elements are counted.
func (l *lowering) failsFirst(entries []*policy.ForEach) cel.Bool {
	out := cel.True()
	if len(entries) == 1 && l.knownParts(entries[0]) {
		if l.attempt(func() { out = l.firstFails(entries[0]) }) != nil {
			return cel.True()
		}
	}
	return out
}

func (l *lowering) firstFails(f *policy.ForEach) cel.Bool {
	l.setPos(f.List.Pos)
	e, d := jmespath.Parse(f.List.Value, f.List.Pos)
	if d != nil {
		return cel.True()
	}
	list := l.queryOutside(e).softly()
	s := l.wholeList(list)
	dynamic := s == nil && list.form == placeForm && list.v.dynamic() && !list.v.never
	if dynamic {
		s = l.sequence(list)
	}
	if s == nil || l.neverErrs(f, s, 0) {
		return cel.True()
	}
	_, read, ok := l.firstBad(f, s, "", 0)
	switch {
	case !ok:
		return cel.True()
	case dynamic:
		return cel.Implies(cel.And(list.v.found(), isList(list.v.expr)), read)
	}
	return read
}

// knownParts tells whether elementParts can say what an element of the foreach says.
func (l *lowering) knownParts(f *policy.ForEach) bool {
	return f.Deny != nil && f.ElementScope == nil && len(l.b.taken) == 0
}

// neverErrs tells that no element is an error.
func (l *lowering) neverErrs(f *policy.ForEach, s sequence, depth int) bool {
	read, _ := l.elementParts(f, valueOf(cel.Ident("element"), s.elem()), depth)
	return read.IsTrue()
}

// firstBad is the elements that do not pass, as a variable, and whether the first of
// them is no error.
func (l *lowering) firstBad(f *policy.ForEach, s sequence, suffix string, depth int) (bad cel.Value, read cel.Bool, ok bool) {
	items, ok := s.list(l, false)
	if !ok {
		return bad, read, false
	}
	name := singular(hintOf(s))
	bad = l.b.filter(items, name, func(x cel.Value) cel.Bool {
		read, holds := l.elementParts(f, valueOf(x, s.elem()), depth)
		return cel.Not(cel.And(read, holds))
	})
	bad = l.let("failing"+capital(name)+"s"+suffix, bad)
	read, _ = l.elementParts(f, valueOf(bad.Index(cel.Int(0)), s.elem()), depth)
	return bad, read, true
}

func (l *lowering) elementErrors() refusal {
	return l.unsupported("failurePolicy Ignore for a foreach whose elements may be errors")
}

// wholeList is a list of a known type of elements; nil for others.
func (l *lowering) wholeList(list operand) sequence {
	switch {
	case list.form == placeForm && list.v.kind() == schema.List:
		return l.sequence(list)
	case list.form == sequenceForm:
		return list.s
	}
	return nil
}

// elementParts is what an element says in two parts that are no errors: whether it
// is none, and whether it passes then.
func (l *lowering) elementParts(f *policy.ForEach, elem operand, depth int) (read, holds cel.Bool) {
	defer l.restore(l.environment)
	defer l.setPos(l.pos)
	l.enter(f, elem, uncounted(depth), depth)
	pre := l.preOfElement(f.Preconditions)
	l.setPos(f.Deny.Pos)
	read, denied := l.conditionParts(f.Deny.Conditions)
	if implied := cel.And(pre.b, read).Simplify(); cel.Equal(implied.Value, pre.b.Simplify().Value) {
		read = cel.True()
	}
	return cel.Implies(pre.b, read), cel.Implies(pre.b, cel.Not(denied))
}

// conditionParts is: no condition that is reached is an error, and the conditions
// hold. Each list ends where one of it decides.
func (l *lowering) conditionParts(c *policy.Conditions) (read, holds cel.Bool) {
	if c == nil {
		return cel.True(), cel.True()
	}
	readAny, some := cel.True(), cel.True()
	if c.Any != nil {
		some = cel.False()
		for i := len(c.Any) - 1; i >= 0; i-- {
			found, b := l.guarded(c.Any[i])
			readAny, some = cel.And(found, cel.Or(b, readAny)), cel.Or(b, some)
		}
	}
	readAll, every := cel.True(), cel.True()
	for i := len(c.All) - 1; i >= 0; i-- {
		found, b := l.guarded(c.All[i])
		readAll, every = cel.And(found, cel.Or(cel.Not(b), readAll)), cel.And(b, every)
	}
	return cel.And(readAny, readAll), cel.And(some, every)
}
