package partial

import "github.com/kvap/kvap/cel"

// A Bool is a condition on every request: it errs, or holds, or does not. Errs is never an
// error, Holds is none where Errs is false.
type Bool struct{ Errs, Holds cel.Bool }

// Sure is a condition that never errs.
func Sure(holds cel.Bool) Bool { return Bool{cel.False(), holds} }

// Where is a condition that errs unless the needs hold.
func Where(needs, holds cel.Bool) Bool { return Bool{cel.Not(needs), holds} }

// Read is: b does not err.
func (b Bool) Read() cel.Bool { return cel.Not(b.Errs) }

// Not is !b.
func (b Bool) Not() Bool { return Bool{b.Errs, cel.Not(b.Holds)} }

// OrFalse is b with an error for false.
func (b Bool) OrFalse() cel.Bool { return cel.And(b.Read(), b.Holds) }

// Then is b && c, where c is only looked at if b holds.
func (b Bool) Then(c Bool) Bool {
	return Bool{cel.Or(b.Errs, cel.And(b.Holds, c.Errs)), cel.And(b.Holds, c.Holds)}
}

// Else is b || c, where c is only looked at if b does not hold.
func (b Bool) Else(c Bool) Bool { return b.Not().Then(c.Not()).Not() }

// Both is b && c, where both are looked at.
func (b Bool) Both(c Bool) Bool {
	return Bool{cel.Or(b.Errs, c.Errs), cel.And(b.Holds, c.Holds)}
}

// All is that all hold. They are looked at in order, until one does not hold or errs.
func All(bs ...Bool) Bool {
	out := Sure(cel.True())
	for i := len(bs) - 1; i >= 0; i-- {
		out = bs[i].Then(out)
	}
	return out
}

// Any is that some hold. They are looked at in order, until one holds or errs.
func Any(bs ...Bool) Bool {
	out := Sure(cel.False())
	for i := len(bs) - 1; i >= 0; i-- {
		out = bs[i].Else(out)
	}
	return out
}

// Native is b as one expression, which is an error where b errs, and whether it ever is. The
// variables are the composed ones; the error names a key.
func (b Bool) Native(name string, variables func(name string) (cel.Value, bool)) (expr cel.Bool, errs bool) {
	needs := b.Read().Simplify()
	switch {
	case needs.IsTrue():
		return b.Holds, false
	case needs.IsFalse():
		return Failing(name), true
	}
	holds := b.Holds.Given(needs)
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
