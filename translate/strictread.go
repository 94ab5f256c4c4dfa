package translate

import (
	"slices"

	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/jmespath"
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
		c, ok := l.readable(inner)
		switch {
		case !ok:
			panic(l.unsupported("a list or a map inside an expression"))
		case c.IsTrue() || j.form == placeForm && j.v.certain() && l.reading(inner).In(j.v.expr):
			continue
		}
		j = choice(c, j, typeError("variable"))
	}
	return j
}

// readBoth is b, a condition on key and value, and an error where reading either is
// one: Kyverno reads both before it compares them, and one may decide b alone.
func (l *lowering) readBoth(key, value operand, b cel.Bool) cel.Bool {
	_, known := b.Const()
	single := func(j operand) bool { return j.form != multiForm } // of lists, one element may decide
	if !known && single(key) && single(value) && (key.form == litForm || value.form == litForm) {
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
			l.askFor(j)
		}
		return b
	}
	c, ok := l.readable(j)
	if !ok || c.IsTrue() || l.reading(j).In(b.Value) {
		return b
	}
	return cel.CondBool(c, b, l.failing(j))
}

// alreadyFound tells that the place j is among what must be there.
func (l *lowering) alreadyFound(j operand) bool {
	if j.form != placeForm {
		return false
	}
	needs := cel.And(*l.found...).Simplify()
	return cel.Equal(cel.And(needs, j.v.found()).Simplify().Value, needs.Value)
}

// readable is: reading j strictly is no error. It is false where j has no expression.
func (l *lowering) readable(j operand) (cel.Bool, bool) {
	if j.form == errorForm {
		return cel.False(), true
	}
	defer l.restore(l.environment)
	l.found = &[]cel.Bool{}
	ok := l.askFor(j)
	return cel.And(*l.found...), ok
}

// askFor notes what must be there for j to be read, and is false where j has no
// expression. A list that is missing under a projection is null, and no error.
func (l *lowering) askFor(j operand) bool {
	switch s := j.s.(type) {
	case strictList:
		return l.askFor(operandAt(s.v))
	case complete:
		s.asked(l)
		return l.askFor(sequenceOf(s.sequence))
	case guarded:
		return s.soft || l.askFor(operandAt(s.v))
	}
	if j.form == sequenceForm {
		return true
	}
	if j.form == multiForm {
		ok := true
		for _, part := range j.multi {
			ok = l.askFor(part) && ok
		}
		return ok
	}
	_, ok := l.expr(j)
	return ok
}

// reading is what reads j strictly; of what is no place, nothing is known to.
func (l *lowering) reading(j operand) cel.Reading {
	if j.form != placeForm {
		return cel.Reading{Value: cel.Ident("?")}
	}
	r := cel.Reading{Value: j.v.expr, Variables: func(name string) (cel.Value, bool) {
		i := slices.IndexFunc(l.variables, func(v variable) bool { return v.name == name })
		if i < 0 {
			return cel.Value{}, false
		}
		return l.variables[i].expr, true
	}}
	for _, g := range j.v.guards {
		if g.shape {
			r.Under = append(r.Under, g.cond)
		}
	}
	return r
}
