package translate

import (
	"github.com/kvap/kvap/cel"
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
	if !out.errs || l.found != nil || l.policy.FailurePolicy != policy.Ignore || list.form == errorForm {
		return out
	}
	s := l.wholeList(list)
	if s == nil || f.Deny == nil || f.ElementScope != nil || len(l.b.taken) > 0 {
		panic(l.elementErrors())
	}
	items, ok := s.list(l, false)
	if !ok {
		panic(l.elementErrors())
	}
	name := singular(hintOf(s))
	bad := l.b.filter(items, name, func(x cel.Value) cel.Bool {
		read, holds := l.elementParts(f, valueOf(x, s.elem()), depth)
		return cel.Not(cel.And(read, holds))
	})
	bad = l.let("failing"+capital(name)+"s", bad)
	read, _ := l.elementParts(f, valueOf(bad.Index(cel.Int(0)), s.elem()), depth)
	return truthValue{cel.CondBool(bad.Size().Eq(cel.Int(0)), cel.True(),
		cel.CondBool(read, cel.False(), l.failing(operand{hint: "element"}))), true}
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
	l.enter(f, elem, operand{form: errorForm, hint: "elementIndex"}, depth)
	pre := l.preOfElement(f.Preconditions)
	l.setPos(f.Deny.Pos)
	read, denied := l.conditionParts(f.Deny.Conditions)
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
