package read

import (
	"slices"

	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/translate/internal/partial"
)

// Needs are what must hold for what was built to be no error, in the order in which Kyverno
// looks at it. What is built is total where they hold.
type Needs struct {
	Conds []cel.Bool
	// Loads must hold for the query to be evaluated at all, whatever it makes of errors.
	Loads []cel.Bool
	Hint  string // what is missing, for the error
	// Unsure tells of an error that no condition tells beforehand: what counts an error
	// as false has no native form then.
	Unsure bool
	// Native tells that what was built is an error of CEL's own for what Kyverno may read
	// otherwise, which stays one everywhere.
	Native bool
}

// All is: everything that is needed holds.
func (n Needs) All() cel.Bool { return cel.And(slices.Concat(n.Loads, n.Conds)...) }

// None tells that nothing can be an error.
func (n Needs) None() bool { return n.All().IsTrue() && !n.Unsure && !n.Native }

// Need notes that what is built is an error unless c holds.
func (l *Lowering) Need(c cel.Bool) { l.NeedFor("", c) }

// NeedFor is need, where an error names a key.
func (l *Lowering) NeedFor(hint string, c cel.Bool) {
	l.Needs.add(&l.Needs.Conds, hint, c)
}

// Load notes that the query at hand is not evaluated unless c holds.
func (l *Lowering) Load(hint string, c cel.Bool) {
	l.Needs.add(&l.Needs.Loads, hint, c)
}

func (n *Needs) add(to *[]cel.Bool, hint string, c cel.Bool) {
	if n.Hint == "" {
		n.Hint = hint
	}
	if !c.IsTrue() && !listed(c, *to) {
		*to = append(*to, c)
	}
}

// NeedAll notes what was collected.
func (l *Lowering) NeedAll(n Needs) {
	for _, c := range n.Loads {
		l.Load(n.Hint, c)
	}
	for _, c := range n.Conds {
		l.NeedFor(n.Hint, c)
	}
	l.Needs.Unsure = l.Needs.Unsure || n.Unsure
	l.Needs.Native = l.Needs.Native || n.Native
}

// Collected is what build needs. It is not told to whoever collects around it.
func (l *Lowering) Collected(build func()) Needs {
	around, n := l.Needs, &Needs{}
	l.Needs = n
	defer func() { l.Needs = around }()
	build()
	return *n
}

// Silently is collected of what was told of already, or will be.
func (l *Lowering) Silently(build func(l *Lowering)) Needs {
	l = l.Inside()
	l.Notes = nil
	return l.Collected(func() { build(l) })
}

// perLoop is what build says of the element x of a loop. What that needs of the element is
// not known outside of the loop, and stays an error of CEL's own.
func (l *Lowering) perLoop(x cel.Value, build func() cel.Bool) cel.Bool {
	var b cel.Bool
	n := l.Collected(func() { b = build() })
	of := func(c cel.Bool) bool { return c.Count(x.String()) > 0 }
	n.Native = n.Native || slices.ContainsFunc(n.Conds, of)
	n.Conds, n.Loads = slices.DeleteFunc(n.Conds, of), slices.DeleteFunc(n.Loads, of)
	l.NeedAll(n)
	return b
}

// Told is what build says, and when that is an error.
func (l *Lowering) Told(build func() cel.Bool) partial.Bool {
	var b cel.Bool
	n := l.Collected(func() { b = build() })
	if n.Hint == "" {
		n.Hint = "missing"
	}
	out := partial.Where(n.All(), b, n.Hint, func(name string) (cel.Value, bool) { return Defined(l, name) })
	switch {
	case n.Unsure:
		return partial.MayErr(out.Expr)
	case n.Native:
		return out.ErrsInCEL()
	}
	return out
}

// Apart is how b comes out, for whoever counts an error as something else. A refusal where no
// condition tells the error beforehand.
func (l *Lowering) Apart(b partial.Bool) partial.Apart {
	apart, ok := b.Apart()
	if !ok {
		panic(l.Unsupported("a condition that may be an error, where an error counts as false,"))
	}
	return apart
}

// Failing is the error j.
func (l *Lowering) Failing(j Operand) cel.Bool {
	l.NeedFor(j.Hint, cel.False())
	return cel.False()
}

// EitherWay builds what counts where c holds and what counts where it does not. What
// each needs, it needs only then.
func EitherWay[T any](l *Lowering, c cel.Bool, then, els func() T) (t, e T) {
	a := l.Collected(func() { t = then() })
	b := l.Collected(func() { e = els() })
	for _, n := range a.Conds {
		if listed(n, b.Conds) { // it is needed either way
			l.Need(n)
		}
	}
	rest := func(n Needs) cel.Bool {
		return cel.And(slices.DeleteFunc(slices.Clone(n.Conds), func(c cel.Bool) bool { return listed(c, l.Needs.Conds) })...)
	}
	switch x, y := rest(a), rest(b); {
	case cel.Equal(x.Value, y.Value):
		l.Need(x)
	case x.IsTrue():
		l.Need(cel.Or(c, y))
	case y.IsTrue():
		l.Need(cel.Implies(c, x))
	default:
		l.Need(cel.CondBool(c, x, y))
	}
	l.NeedAll(Needs{Loads: slices.Concat(a.Loads, b.Loads), Hint: a.Hint + b.Hint, Unsure: a.Unsure || b.Unsure, Native: a.Native || b.Native})
	return t, e
}

// listed tells that a condition is one of some.
func listed(c cel.Bool, conds []cel.Bool) bool {
	return slices.ContainsFunc(conds, func(o cel.Bool) bool { return cel.Equal(o.Value, c.Value) })
}

// Ask needs what reading j needs. It is false where j has no expression. A list that is
// missing under a projection is null, and no error.
func (l *Lowering) Ask(j Operand) bool {
	l.Opts.Budget.Spend(1)
	switch s := j.S.(type) {
	case StrictList:
		return l.Ask(OperandAt(s.V))
	case Guarded:
		return s.soft || l.Ask(OperandAt(s.V))
	case Entries:
		if s.Given { // of nothing else than a map
			l.Need(s.V.Found())
		}
	}
	switch j.Form {
	case SequenceForm:
		return true
	case MultiForm, HashForm:
		ok := true
		for _, part := range j.Multi {
			ok = l.Ask(part) && ok
		}
		return ok
	case ChoiceForm:
		then, els := EitherWay(l, j.C,
			func() bool { return l.Ask(*j.Then) },
			func() bool { return l.Ask(*j.Els) })
		return then && els
	case ErrorForm:
		l.Failing(j)
		return true
	}
	_, ok := Expr(l, j)
	return ok
}

// Readable is: reading j is no error. It is false where j has no expression.
func (l *Lowering) Readable(j Operand) (c cel.Bool, ok bool) {
	n := l.Collected(func() { ok = l.Ask(j) })
	return n.All(), ok
}
