package translate

import (
	"slices"

	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/jmespath"
	"github.com/kvap/kvap/policy"
)

// filled is j, what an expression gives, and an error where a variable inside the
// expression is one. Kyverno fills those in first, as text: also where the
// expression turns out not to need them.
func (l *lowering) filled(e *jmespath.Expr, j operand) operand {
	jmespath.Walk(e, func(e *jmespath.Expr) bool {
		for _, t := range []*jmespath.Template{e.Text, e.Dynamic} {
			if t != nil {
				j = l.whereFilled(t, j)
			}
		}
		return e.Text == nil && e.Dynamic == nil // which have seen to what is inside them
	})
	return j
}

func (l *lowering) whereFilled(t *jmespath.Template, j operand) operand {
	for _, part := range t.Parts {
		if part.Var == nil {
			continue
		}
		inner := l.variable(part.Var)
		var in cel.Value
		if j.form == placeForm && j.v.certain() {
			in = j.v.expr
		}
		c, ok := l.readable(inner, in)
		if !ok {
			panic(l.unsupported("a list or a map inside an expression"))
		}
		j = choice(c, j, typeError("variable"))
	}
	return j
}

// whereFilledIn is b, a condition on the list of texts that n is, and an error where a
// variable in one of the texts is one: another element may decide without it.
func (l *lowering) whereFilledIn(j operand, n *policy.Node, b cel.Bool) cel.Bool {
	if j.form != multiForm || n.Kind != policy.List {
		return b
	}
	defer l.restore(l.environment)
	outer := l.found
	l.found = &[]cel.Bool{}
	l.eachVariable(n, func(j operand) { asking{l: l}.of(j) })
	needs := cel.And(*l.found...)
	if outer != nil {
		*outer = append(*outer, needs)
		return b
	}
	l.found = nil
	if needs.IsTrue() {
		return b
	}
	return cel.CondBool(needs, b, l.failing(typeError("variable")))
}

// readBoth is b, a condition on key and value, and an error where reading either is
// one: Kyverno reads both before it compares them, and one may decide b alone, or
// neither does: b was unread.
func (l *lowering) readBoth(key, value operand, b cel.Bool, unread bool) cel.Bool {
	if !unread && (key.form == litForm || value.form == litForm) {
		return b // b is about the other one
	}
	b = l.whereRead(key, l.whereRead(value, b))
	if l.found != nil || key.form == litForm || value.form == litForm {
		return b
	}
	return l.probeImages(b)
}

// whereRead is b, and an error where reading j is one.
func (l *lowering) whereRead(j operand, b cel.Bool) cel.Bool {
	if l.found != nil {
		if !l.alreadyFound(j) {
			asking{l: l}.of(j)
		}
		return b
	}
	c, ok := l.readable(j, b.Value)
	if !ok || c.IsTrue() {
		return l.whereBuilt(j, b, nil)
	}
	return cel.CondBool(c, b, l.failing(j))
}

// whereBuilt is b, and an error where a text that is put together, or a number that is
// worked out, is one and b does not read it. under is what holds where j is read.
func (l *lowering) whereBuilt(j operand, b cel.Bool, under []cel.Bool) cel.Bool {
	if _, known := b.Const(); known || !l.errs {
		return b
	}
	if j.form == choiceForm {
		then := l.whereBuilt(*j.then, b, append(slices.Clip(under), j.c))
		els := l.whereBuilt(*j.els, b, append(slices.Clip(under), cel.Not(j.c)))
		if cel.Equal(then.Value, els.Value) {
			return then
		}
		return cel.CondBool(j.c, then, els)
	}
	if j.form != placeForm || !j.v.certain() {
		return b
	}
	path, _, isPath := j.v.expr.OptionalPath()
	if isPath && path[0] != "variables" { // a composed variable is what it is made of
		return b
	}
	if (asking{l: l, in: b.Value, under: under}).reads(j) {
		return b
	}
	return cel.CondBool(isNull(dyn(j.v.expr)), b, b)
}

// alreadyFound tells that the place j is among what must be there.
func (l *lowering) alreadyFound(j operand) bool {
	if j.form != placeForm {
		return false
	}
	needs := cel.And(*l.found...).Simplify()
	return cel.Equal(cel.And(needs, j.v.found()).Simplify().Value, needs.Value)
}

// readable is: reading j strictly is no error, as far as the expression in, which may
// be none, does not read it anyway. It is false where j has no expression.
func (l *lowering) readable(j operand, in cel.Value) (cel.Bool, bool) {
	defer l.restore(l.environment)
	l.found = &[]cel.Bool{}
	ok := asking{l: l, in: in}.of(j)
	return cel.And(*l.found...), ok
}

// An asking notes what must be there for an operand to be read.
type asking struct {
	l     *lowering
	in    cel.Value  // what it reads need not be asked for
	under []cel.Bool // what holds where the operand is read
}

// of asks for what j reads, and is false where j has no expression. A list that is
// missing under a projection is null, and no error.
func (a asking) of(j operand) bool {
	a.l.opts.Budget.Spend(1)
	switch s := j.s.(type) {
	case strictList:
		return a.of(operandAt(s.v))
	case complete:
		s.asked(a.l)
		return a.of(sequenceOf(s.sequence))
	case guarded:
		return s.soft || a.of(operandAt(s.v))
	case entries:
		if s.given { // of nothing else than a map
			*a.l.found = append(*a.l.found, s.v.found())
		}
	}
	switch j.form {
	case sequenceForm:
		return true
	case multiForm, hashForm: // of what the policy has as a list, whereFilledIn asks
		ok := true
		for _, part := range j.multi {
			ok = a.of(part) && ok
		}
		return ok
	case choiceForm:
		return a.ofChoice(j)
	case errorForm:
		a.l.error(j)
		return true
	}
	if a.reads(j) {
		return true
	}
	_, ok := a.l.expr(j)
	return ok
}

func (a asking) ofChoice(j operand) bool {
	var then, els bool
	chosen := a.reading(j.c.Value, nil)
	branch := func(j operand, given cel.Bool) bool {
		if j.form == errorForm && chosen { // and so is the error
			return true
		}
		return asking{a.l, a.in, append(slices.Clip(a.under), given)}.of(j)
	}
	a.l.eitherWay(j.c,
		func() cel.Bool { then = branch(*j.then, j.c); return cel.True() },
		func() cel.Bool { els = branch(*j.els, cel.Not(j.c)); return cel.True() })
	return then && els
}

// reads tells that whoever evaluates the expression reads j.
func (a asking) reads(j operand) bool {
	if j.form != placeForm {
		return false
	}
	var shape []cel.Bool
	for _, g := range j.v.guards {
		if g.shape {
			shape = append(shape, g.cond)
		}
	}
	return a.reading(j.v.expr, shape)
}

// reading tells that whoever evaluates the expression evaluates v, where that and
// what is known here holds.
func (a asking) reading(v cel.Value, where []cel.Bool) bool {
	return !a.in.IsZero() && cel.Reading{Value: v, Under: slices.Concat(a.under, where), Variables: a.l.defined}.In(a.in)
}
