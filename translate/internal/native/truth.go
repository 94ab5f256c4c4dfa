package native

import (
	"slices"

	"github.com/kvap/kvap/cel"
)

// A Truth is a condition, and whether evaluating it may be an error.
type Truth struct {
	Expr cel.Bool
	Errs bool
}

// Sure is a condition that is never an error.
func Sure(b cel.Bool) Truth { return Truth{Expr: b} }

// MayErr is a condition that may be an error.
func MayErr(b cel.Bool) Truth { return Truth{Expr: b, Errs: true} }

// OrElse is t || u, strict in t.
func (t Truth) OrElse(u Truth) Truth {
	errs := t.Errs || u.Errs
	if !t.Errs || u.Expr.IsFalse() {
		return Truth{Expr: cel.Or(t.Expr, u.Expr), Errs: errs}
	}
	return Truth{Expr: cel.CondBool(t.Expr, cel.True(), u.Expr), Errs: errs}
}

// AndThen is t && u, strict in t.
func (t Truth) AndThen(u Truth) Truth {
	errs := t.Errs || u.Errs
	if !t.Errs || u.Expr.IsTrue() {
		return Truth{Expr: cel.And(t.Expr, u.Expr), Errs: errs}
	}
	return Truth{Expr: cel.CondBool(t.Expr, u.Expr, cel.False()), Errs: errs}
}

// Knowing is t where c holds, without asking for what c tells to be there.
func (t Truth) Knowing(c cel.Bool) Truth {
	return Truth{Expr: cel.Simplify(t.Expr.Knowing(c)).AsBool(), Errs: t.Errs}
}

// Both is t && u where both are always evaluated, so that an error of either is
// one of the whole.
func (t Truth) Both(u Truth) Truth {
	if !t.Errs {
		return u.AndThen(t)
	}
	if !u.Errs {
		return t.AndThen(u)
	}
	return MayErr(cel.CondBool(t.Expr, u.Expr, cel.CondBool(u.Expr, cel.False(), cel.False())))
}

// Implies is !t || u, strict in t.
func (t Truth) Implies(u Truth) Truth {
	errs := t.Errs || u.Errs
	if !t.Errs || u.Expr.IsFalse() && !u.Errs {
		return Truth{Expr: cel.Implies(t.Expr, u.Expr), Errs: errs}
	}
	return Truth{Expr: cel.CondBool(t.Expr, u.Expr, cel.True()), Errs: errs}
}

// Not is !t.
func (t Truth) Not() Truth { return Truth{Expr: cel.Not(t.Expr), Errs: t.Errs} }

// SomeInOrder is the disjunction of conditions, strict in each.
func SomeInOrder(ts []Truth) Truth {
	return inOrder(ts, Sure(cel.False()), cel.Or, Truth.OrElse)
}

// AllInOrder is the conjunction of conditions, strict in each.
func AllInOrder(ts []Truth) Truth {
	return inOrder(ts, Sure(cel.True()), cel.And, Truth.AndThen)
}

// inOrder puts conditions before the rest. Those that follow one another and are
// never an error are joined at once: one by one, a long chain would be made anew for
// each of its terms.
func inOrder(ts []Truth, rest Truth, join func(...cel.Bool) cel.Bool, before func(Truth, Truth) Truth) Truth {
	for i := len(ts) - 1; i >= 0; i-- {
		if ts[i].Errs {
			rest = before(ts[i], rest)
			continue
		}
		sure := []cel.Bool{rest.Expr}
		for ; i >= 0 && !ts[i].Errs; i-- {
			sure = append(sure, ts[i].Expr)
		}
		i++ // the last one that was joined
		slices.Reverse(sure)
		rest.Expr = join(sure...)
	}
	return rest
}
