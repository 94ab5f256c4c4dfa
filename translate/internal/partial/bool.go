package partial

import (
	"slices"

	"github.com/kvap/kvap/cel"
)

// A Bool is a condition on every request: it errs, or holds, or does not. It is one expression
// of CEL, and where somebody asks for it the two questions apart.
type Bool struct {
	// Expr is an error where the condition errs.
	Expr cel.Bool
	// Errs tells that it may be one.
	Errs bool
	// apart is nil where Errs is false, and where no condition tells an error beforehand.
	apart func() Apart
}

// Apart is how a condition comes out, asked apart: it holds, or it fails, or it is not readable.
// None of it is an error of Kyverno's, nor of CEL's, but for what ErrsInCEL says of.
type Apart struct{ Holds, Fails, Readable cel.Bool }

// ApartSure is a condition that never errs.
func ApartSure(holds cel.Bool) Apart { return Apart{holds, cel.Not(holds), cel.True()} }

// Sure is a condition that never errs.
func Sure(holds cel.Bool) Bool { return Bool{Expr: holds} }

// MayErr is an expression that may be an error which no condition tells beforehand.
func MayErr(expr cel.Bool) Bool { return Bool{Expr: expr, Errs: true} }

// Where is a condition that errs unless the needs hold. The variables are the composed ones;
// the error names a key.
func Where(needs, holds cel.Bool, name string, variables func(name string) (cel.Value, bool)) Bool {
	out := Bool{}
	if out.Expr, out.Errs = native(needs, holds, name, variables); out.Errs {
		out.apart = func() Apart { return Apart{cel.And(needs, holds), cel.And(needs, cel.Not(holds)), needs} }
	}
	return out
}

// ToldBy is an expression that may be an error, and how it is told apart. That is worked out
// where somebody asks, and may refuse the rule or make variables of it.
func ToldBy(expr cel.Bool, apart func() Apart) Bool {
	return Bool{Expr: expr, Errs: true, apart: apart}
}

// Error is a condition that errs always.
func Error(name string) Bool { return Where(cel.False(), cel.False(), name, nil) }

// ErrsInCEL is b where CEL may err besides, of what Kyverno reads otherwise: how it comes out
// is told as if CEL did not.
func (b Bool) ErrsInCEL() Bool {
	if !b.Errs {
		expr := b.Expr
		b.apart = func() Apart { return ApartSure(expr) }
	}
	b.Errs = true
	return b
}

// Apart is b in two questions; false where no condition tells its error beforehand.
func (b Bool) Apart() (Apart, bool) {
	switch {
	case b.apart != nil:
		return b.apart(), true
	case b.Errs:
		return Apart{}, false
	}
	return ApartSure(b.Expr), true
}

// As is b in another expression that says the same.
func (b Bool) As(expr cel.Bool) Bool {
	b.Expr = expr
	return b
}

// of is an expression made of conditions, which errs if one of them may, and how it is told
// apart.
func of(expr cel.Bool, apart func(of []Apart) Apart, bs ...Bool) Bool {
	out := Bool{Expr: expr}
	known := true
	for _, b := range bs {
		out.Errs = out.Errs || b.Errs
		known = known && (b.apart != nil || !b.Errs)
	}
	if out.Errs && known {
		out.apart = func() Apart {
			parts := make([]Apart, len(bs))
			for i, b := range bs {
				parts[i], _ = b.Apart()
			}
			return apart(parts)
		}
	}
	return out
}

func (a Apart) not() Apart { return Apart{a.Fails, a.Holds, a.Readable} }

// Then is a && c, where c is only looked at if a holds.
func (a Apart) Then(c Apart) Apart {
	reads := cel.Implies(a.Holds, c.Readable)
	if cel.Equal(cel.And(a.Holds, c.Readable).Simplify().Value, a.Holds.Simplify().Value) { // a asks for what c reads
		reads = cel.True()
	}
	return Apart{cel.And(a.Holds, c.Holds), cel.Or(a.Fails, cel.And(a.Holds, c.Fails)), cel.And(a.Readable, reads)}
}

// Not is !b.
func (b Bool) Not() Bool {
	return of(cel.Not(b.Expr), func(of []Apart) Apart { return of[0].not() }, b)
}

// Then is b && c, where c is only looked at if b holds.
func (b Bool) Then(c Bool) Bool {
	expr := cel.And(b.Expr, c.Expr)
	if b.Errs && !c.Expr.IsTrue() {
		expr = cel.CondBool(b.Expr, c.Expr, cel.False())
	}
	return of(expr, func(of []Apart) Apart { return of[0].Then(of[1]) }, b, c)
}

// Else is b || c, where c is only looked at if b does not hold.
func (b Bool) Else(c Bool) Bool {
	expr := cel.Or(b.Expr, c.Expr)
	if b.Errs && !c.Expr.IsFalse() {
		expr = cel.CondBool(b.Expr, cel.True(), c.Expr)
	}
	return of(expr, func(of []Apart) Apart { return of[0].not().Then(of[1].not()).not() }, b, c)
}

// Implies is !b || c, where c is only looked at if b holds.
func (b Bool) Implies(c Bool) Bool {
	expr := cel.Implies(b.Expr, c.Expr)
	if b.Errs && (c.Errs || !c.Expr.IsFalse()) {
		expr = cel.CondBool(b.Expr, c.Expr, cel.True())
	}
	return of(expr, func(of []Apart) Apart { return of[0].Then(of[1].not()).not() }, b, c)
}

// Both is b && c, where both are looked at: an error of either is one of the whole.
func (b Bool) Both(c Bool) Bool {
	var expr cel.Bool
	switch {
	case !b.Errs:
		expr = c.Then(b).Expr
	case !c.Errs:
		expr = b.Then(c).Expr
	default:
		expr = cel.CondBool(b.Expr, c.Expr, cel.CondBool(c.Expr, cel.False(), cel.False()))
	}
	return of(expr, func(of []Apart) Apart {
		reads := cel.And(of[0].Readable, of[1].Readable)
		return Apart{cel.And(of[0].Holds, of[1].Holds), cel.And(reads, cel.Or(of[0].Fails, of[1].Fails)), reads}
	}, b, c)
}

// Cond is then where c holds, and els where it does not.
func Cond(c cel.Bool, then, els Bool) Bool {
	if known, ok := c.Const(); ok {
		if known {
			return then
		}
		return els
	}
	return of(cel.CondBool(c, then.Expr, els.Expr), func(of []Apart) Apart {
		return Apart{cel.CondBool(c, of[0].Holds, of[1].Holds), cel.CondBool(c, of[0].Fails, of[1].Fails), cel.CondBool(c, of[0].Readable, of[1].Readable)}
	}, then, els)
}

// All is that all hold. They are looked at in order, until one does not hold or errs.
func All(bs ...Bool) Bool { return inOrder(bs, Sure(cel.True()), cel.And, Bool.Then) }

// Any is that some hold. They are looked at in order, until one holds or errs.
func Any(bs ...Bool) Bool { return inOrder(bs, Sure(cel.False()), cel.Or, Bool.Else) }

// inOrder puts conditions before the rest. Those that follow one another and never err are
// joined at once: one by one, a long chain would be made anew for each of its terms.
func inOrder(bs []Bool, rest Bool, join func(...cel.Bool) cel.Bool, before func(Bool, Bool) Bool) Bool {
	for i := len(bs) - 1; i >= 0; i-- {
		var sure []cel.Bool
		for ; i >= 0 && !bs[i].Errs; i-- {
			sure = append(sure, bs[i].Expr)
		}
		if len(sure) > 0 {
			slices.Reverse(sure)
			rest = before(Sure(join(sure...)), rest)
		}
		if i >= 0 {
			rest = before(bs[i], rest)
		}
	}
	return rest
}

// native is what holds as one expression, which is an error where the needs do not hold, and
// whether it ever is.
func native(needs, holds cel.Bool, name string, variables func(name string) (cel.Value, bool)) (expr cel.Bool, errs bool) {
	needs = needs.Simplify()
	switch {
	case needs.IsTrue():
		return holds, false
	case needs.IsFalse():
		return Failing(name), true
	}
	holds = holds.Given(needs)
	rest := holds.Unread(needs, variables)
	if rest.IsTrue() {
		return holds, true
	}
	return cel.CondBool(rest, holds, Failing(name)), true
}

// Failing is an expression that is an error, which names a key.
func Failing(name string) cel.Bool {
	return Fault(name).Eq(cel.Lit(true).Value)
}

// Fault is an error in the place of a value.
func Fault(name string) cel.Value { return cel.Func(cel.FuncDyn, cel.Map()).Field(name) }
