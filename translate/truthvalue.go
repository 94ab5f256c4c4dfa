package translate

import "github.com/kvap/kvap/cel"

// A truthValue is a condition, and whether evaluating it may be an error.
type truthValue struct {
	b    cel.Bool
	errs bool
}

// orElse is t || u, strict in t.
func (t truthValue) orElse(u truthValue) truthValue {
	errs := t.errs || u.errs
	if !t.errs || u.b.IsFalse() {
		return truthValue{cel.Or(t.b, u.b), errs}
	}
	return truthValue{cel.CondBool(t.b, cel.True(), u.b), errs}
}

// andThen is t && u, strict in t.
func (t truthValue) andThen(u truthValue) truthValue {
	errs := t.errs || u.errs
	if !t.errs || u.b.IsTrue() {
		return truthValue{cel.And(t.b, u.b), errs}
	}
	return truthValue{cel.CondBool(t.b, u.b, cel.False()), errs}
}

// both is t && u where both are always evaluated, so that an error of either is
// one of the whole.
func (t truthValue) both(u truthValue) truthValue {
	if !t.errs {
		return u.andThen(t)
	}
	if !u.errs {
		return t.andThen(u)
	}
	return truthValue{cel.CondBool(t.b, u.b, cel.CondBool(u.b, cel.False(), cel.False())), true}
}

// implies is !t || u, strict in t.
func (t truthValue) implies(u truthValue) truthValue {
	errs := t.errs || u.errs
	if !t.errs || u.b.IsFalse() && !u.errs {
		return truthValue{cel.Implies(t.b, u.b), errs}
	}
	return truthValue{cel.CondBool(t.b, u.b, cel.True()), errs}
}

func (t truthValue) not() truthValue { return truthValue{cel.Not(t.b), t.errs} }

// effect runs build and says whether what it built may be an error.
func (l *lowering) effect(build func() cel.Bool) truthValue {
	saved := l.errs
	l.errs = false
	b := build()
	errs := l.errs
	l.errs = saved || errs
	return truthValue{b, errs}
}
