package native

import "github.com/kvap/kvap/cel"

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
