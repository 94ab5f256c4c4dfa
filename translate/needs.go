package translate

import (
	"slices"

	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/translate/internal/native"
	"github.com/kvap/kvap/translate/internal/partial"
)

// needs are what must hold for what was built to be no error, in the order in which Kyverno
// looks at it. What is built is total where they hold.
type needs struct {
	conds []cel.Bool
	// loads must hold for the query to be evaluated at all, whatever it makes of errors.
	loads []cel.Bool
	hint  string // what is missing, for the error
	// unsure tells of an error that no condition tells beforehand: what counts an error
	// as false has no native form then.
	unsure bool
	// native tells that what was built is an error of CEL's own for what Kyverno may read
	// otherwise, which stays one everywhere.
	native bool
}

func (n needs) all() cel.Bool { return cel.And(slices.Concat(n.loads, n.conds)...) }

// none tells that nothing can be an error.
func (n needs) none() bool { return n.all().IsTrue() && !n.unsure && !n.native }

// need notes that what is built is an error unless c holds.
func (l *lowering) need(c cel.Bool) { l.needFor("", c) }

// needFor is need, where an error names a key.
func (l *lowering) needFor(hint string, c cel.Bool) {
	if l.needs.hint == "" {
		l.needs.hint = hint
	}
	if !c.IsTrue() && !listed(c, l.needs.conds) {
		l.needs.conds = append(l.needs.conds, c)
	}
}

// load notes that the query at hand is not evaluated unless c holds.
func (l *lowering) load(hint string, c cel.Bool) {
	if l.needs.hint == "" {
		l.needs.hint = hint
	}
	if !c.IsTrue() && !listed(c, l.needs.loads) {
		l.needs.loads = append(l.needs.loads, c)
	}
}

// needAll notes what was collected.
func (l *lowering) needAll(n needs) {
	for _, c := range n.loads {
		l.load(n.hint, c)
	}
	for _, c := range n.conds {
		l.needFor(n.hint, c)
	}
	l.needs.unsure = l.needs.unsure || n.unsure
	l.needs.native = l.needs.native || n.native
}

// collected is what build needs. It is not told to whoever collects around it.
func (l *lowering) collected(build func()) needs {
	defer l.restore(l.environment)
	n := &needs{}
	l.needs = n
	build()
	return *n
}

// silently is collected of what was told of already, or will be.
func (l *lowering) silently(build func()) needs {
	notes := l.notes
	l.notes = nil
	defer func() { l.notes = notes }()
	return l.collected(build)
}

// perLoop is what build says of the element x of a loop. What that needs of the element is
// not known outside of the loop, and stays an error of CEL's own.
func (l *lowering) perLoop(x cel.Value, build func() cel.Bool) cel.Bool {
	var b cel.Bool
	n := l.collected(func() { b = build() })
	of := func(c cel.Bool) bool { return c.Count(x.String()) > 0 }
	n.native = n.native || slices.ContainsFunc(n.conds, of)
	n.conds, n.loads = slices.DeleteFunc(n.conds, of), slices.DeleteFunc(n.loads, of)
	l.needAll(n)
	return b
}

// effect is what build says as one expression, which is an error where it is one.
func (l *lowering) effect(build func() cel.Bool) native.Truth {
	var b cel.Bool
	n := l.collected(func() { b = build() })
	if n.hint == "" {
		n.hint = "missing"
	}
	expr, errs := partial.Where(n.all(), b).Native(n.hint, l.defined)
	return native.Truth{Expr: expr, Errs: errs || n.unsure || n.native}
}

// total is what build says, an error apart.
func (l *lowering) total(build func() cel.Bool) partial.Bool {
	var b cel.Bool
	n := l.collected(func() { b = build() })
	if n.unsure {
		panic(l.unsupported("a condition that may be an error, where an error counts as false,"))
	}
	return partial.Where(n.all(), b)
}

// failing is the error j.
func (l *lowering) failing(j operand) cel.Bool {
	l.needFor(j.hint, cel.False())
	return cel.False()
}

// fails is an error of the whole rule.
func fails(hint string) native.Truth { return native.MayErr(partial.Failing(hint)) }

// eitherWay builds what counts where c holds and what counts where it does not. What
// each needs, it needs only then.
func (l *lowering) eitherWay(c cel.Bool, then, els func() cel.Bool) (t, e cel.Bool) {
	a := l.collected(func() { t = then() })
	b := l.collected(func() { e = els() })
	for _, n := range a.conds {
		if listed(n, b.conds) { // it is needed either way
			l.need(n)
		}
	}
	rest := func(n needs) cel.Bool {
		return cel.And(slices.DeleteFunc(slices.Clone(n.conds), func(c cel.Bool) bool { return listed(c, l.needs.conds) })...)
	}
	switch x, y := rest(a), rest(b); {
	case cel.Equal(x.Value, y.Value):
		l.need(x)
	case x.IsTrue():
		l.need(cel.Or(c, y))
	case y.IsTrue():
		l.need(cel.Implies(c, x))
	default:
		l.need(cel.CondBool(c, x, y))
	}
	l.needAll(needs{loads: slices.Concat(a.loads, b.loads), hint: a.hint + b.hint, unsure: a.unsure || b.unsure, native: a.native || b.native})
	return t, e
}

// listed tells that a condition is one of some.
func listed(c cel.Bool, conds []cel.Bool) bool {
	return slices.ContainsFunc(conds, func(o cel.Bool) bool { return cel.Equal(o.Value, c.Value) })
}

// ask needs what reading j needs. It is false where j has no expression. A list that is
// missing under a projection is null, and no error.
func (l *lowering) ask(j operand) bool {
	l.opts.Budget.Spend(1)
	switch s := j.s.(type) {
	case strictList:
		return l.ask(operandAt(s.v))
	case guarded:
		return s.soft || l.ask(operandAt(s.v))
	case entries:
		if s.given { // of nothing else than a map
			l.need(s.v.found())
		}
	}
	switch j.form {
	case sequenceForm:
		return true
	case multiForm, hashForm:
		ok := true
		for _, part := range j.multi {
			ok = l.ask(part) && ok
		}
		return ok
	case choiceForm:
		var then, els bool
		l.eitherWay(j.c,
			func() cel.Bool { then = l.ask(*j.then); return cel.True() },
			func() cel.Bool { els = l.ask(*j.els); return cel.True() })
		return then && els
	case errorForm:
		l.failing(j)
		return true
	}
	_, ok := l.expr(j)
	return ok
}

// readable is: reading j is no error. It is false where j has no expression.
func (l *lowering) readable(j operand) (c cel.Bool, ok bool) {
	n := l.collected(func() { ok = l.ask(j) })
	return n.all(), ok
}
