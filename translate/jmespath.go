package translate

import (
	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/jmespath"
	"github.com/kvap/kvap/schema"
)

// eval lowers a JMESPath expression, with cur as the current node. A nil cur is
// the root of the context.
func (l *lowering) eval(e *jmespath.Expr, cur *operand) operand {
	l.step()
	return l.bounded(l.evalNode(e, cur))
}

func (l *lowering) evalNode(e *jmespath.Expr, cur *operand) operand {
	switch e.Op {
	case jmespath.Current:
		if cur == nil {
			panic(l.unsupported("the whole context as a value"))
		}
		return *cur
	case jmespath.Field:
		return l.fieldOf(e, cur)
	case jmespath.Sub:
		if key, ok := l.fieldOfRequest(e, cur); ok {
			return l.known(l.read(l.requestField(key)))
		}
		left := l.eval(e.Args[0], cur)
		return l.inEach(left, func(j operand) operand { return l.sub(j, e.Args[1]) })
	case jmespath.Pipe:
		return l.pipe(e, cur)
	case jmespath.Index, jmespath.Slice, jmespath.Flatten, jmespath.Projection, jmespath.ValueProjection, jmespath.Filter:
		return l.evalElements(e, cur)
	case jmespath.MultiList, jmespath.MultiHash:
		return l.multi(e, cur)
	case jmespath.Or, jmespath.And, jmespath.Not, jmespath.Compare:
		return l.evalTruth(e, cur)
	case jmespath.Literal:
		return litOf(e.Value)
	case jmespath.RawString:
		return l.rawString(e.Text)
	case jmespath.Call:
		return l.call(e, cur)
	}
	panic(l.unsupported("the expression " + e.String()))
}

// evalElements lowers what is about the elements of a list, or the values of a map.
func (l *lowering) evalElements(e *jmespath.Expr, cur *operand) operand {
	if cur == nil && takesContext(e) {
		return litOf(nil)
	}
	switch e.Op {
	case jmespath.Index:
		left := l.eval(e.Args[0], cur)
		return l.inEach(left, func(j operand) operand { return l.index(j, e.Num) })
	case jmespath.Slice:
		panic(l.unsupported("a slice"))
	case jmespath.Flatten:
		return l.flatten(l.errorless(e.Args[0], cur))
	case jmespath.Projection:
		return l.projection(e.Args[0], e.Args[1], cur)
	case jmespath.Filter:
		left := l.errorless(e.Args[0], cur)
		return l.inEach(left, func(j operand) operand { return l.filterBy(l.sequence(j), e.Args[2], e.Args[1]) })
	}
	left := l.errorless(e.Args[0], cur) // a projection of values
	return l.inEach(left, func(j operand) operand {
		if j.form == imagesForm {
			return l.imageProjection(j.images, e.Args[1])
		}
		return l.project(l.values(j), e.Args[1])
	})
}

// takesContext tells that e takes the current node for a list: [], [*], [?x], [0]. The
// context is a map, so there they are null.
func takesContext(e *jmespath.Expr) bool {
	left := e.Args[0]
	if left.Op == jmespath.Flatten {
		left = left.Args[0]
	}
	return left.Op == jmespath.Current && e.Op != jmespath.ValueProjection
}

// evalTruth lowers what asks whether something is true, or how two values compare.
func (l *lowering) evalTruth(e *jmespath.Expr, cur *operand) operand {
	switch e.Op {
	case jmespath.Or:
		return l.firstTrue(e, cur)
	case jmespath.And:
		return l.and(e, cur)
	case jmespath.Not:
		return boolOf(cel.Not(l.truthy(l.eval(e.Args[0], cur).softly())))
	}
	return l.comparedTo(e, cur)
}

// pipe is left | right.
func (l *lowering) pipe(e *jmespath.Expr, cur *operand) operand {
	return l.inEach(l.eval(e.Args[0], cur).softly(), func(j operand) operand {
		if j.form == errorForm { // whatever right makes of it
			return j
		}
		return l.eval(e.Args[1], &j)
	}).softly()
}

func (l *lowering) and(e *jmespath.Expr, cur *operand) operand {
	a := l.eval(e.Args[0], cur).softly()
	if a.form == errorForm {
		return a
	}
	b := l.whereTrue(l.truthy(a), func() operand { return l.eval(e.Args[1], cur) })
	if isPredicate(a) && isPredicate(b) {
		return boolOf(cel.And(a.v.expr.AsBool(), b.v.expr.AsBool()))
	}
	return choice(l.truthy(a), b, a)
}

// comparedTo is left == right, and the like.
func (l *lowering) comparedTo(e *jmespath.Expr, cur *operand) operand {
	a, b := l.eval(e.Args[0], cur).softly(), l.eval(e.Args[1], cur).softly()
	return l.compare(relationOf(e.Comparator), a, b)
}

// given builds something in a context where a condition is known to hold.
func (l *lowering) given(c cel.Bool, build func() operand) operand {
	defer l.restore(l.environment)
	l.facts = append(l.facts[:len(l.facts):len(l.facts)], c)
	return build()
}

// whereTrue is given, of what is evaluated only where the condition holds.
func (l *lowering) whereTrue(c cel.Bool, build func() operand) operand {
	var out operand
	l.eitherWay(c, func() cel.Bool { out = l.given(c, build); return cel.True() }, cel.True)
	return out
}

// knowing is given, of a condition.
func (l *lowering) knowing(c cel.Bool, build func() cel.Bool) (b cel.Bool) {
	l.given(c, func() operand { b = build(); return operand{} })
	return b
}

// knows tells that a condition is known to hold.
func (l *lowering) knows(c cel.Bool) bool { return listed(c, l.facts) }

// known is j without the guards that are known to hold.
func (l *lowering) known(j operand) operand {
	if j.form != placeForm || len(l.facts) == 0 || j.v.never {
		return j
	}
	for _, g := range j.v.guards {
		if !l.knows(g.cond) {
			return j
		}
	}
	return j.settled()
}

// sub is left.right, where a missing left stays an error.
func (l *lowering) sub(left operand, right *jmespath.Expr) operand {
	if left.form == errorForm {
		return left
	}
	if left.form == placeForm && !left.v.certain() {
		switch right.Op {
		case jmespath.Call, jmespath.Projection, jmespath.Filter, jmespath.ValueProjection, jmespath.MultiList, jmespath.MultiHash:
			inner := left.settled()
			return l.behindGuards(left.v, l.eval(right, &inner), right)
		}
	}
	return l.eval(right, &left)
}

// behindGuards is j, which right gives of v, where v is found. Elsewhere it is missing,
// or what right gives of null.
func (l *lowering) behindGuards(v place, j operand, right *jmespath.Expr) operand {
	if v.never {
		return operand{form: errorForm, hint: "missing"}
	}
	switch j.form {
	case placeForm:
		j.v.guards = append(v.guards[:len(v.guards):len(v.guards)], j.v.guards...)
		j.v.opt = cel.Value{}
		return j
	case sequenceForm:
		return sequenceOf(guarded{sequence: j.s, v: v, called: right.Op == jmespath.Call})
	}
	w, c := v.demanded()
	elsewhere := operand{form: errorForm, hint: "missing"}
	if !w.shaped().IsTrue() {
		null := litOf(nil)
		elsewhere = choice(w.keysFound(), l.eval(right, &null), elsewhere)
	}
	return choice(c, choice(w.found(), j, elsewhere), typeError("value"))
}

func (l *lowering) multi(e *jmespath.Expr, cur *operand) operand {
	if cur != nil {
		if cur.form == litForm && cur.lit == nil {
			return litOf(nil)
		}
		if cur.form == errorForm {
			return *cur
		}
		if cur.form == placeForm && !cur.v.certain() { // null where it is not found
			inner := cur.settled()
			return choice(l.present(*cur), l.multi(e, &inner), litOf(nil))
		}
	}
	var parts []operand
	for _, arg := range e.Args {
		j := l.eval(arg, cur).softly()
		if j.form == errorForm {
			return j
		}
		parts = append(parts, j)
	}
	if e.Op == jmespath.MultiHash {
		return selectionOf(hashForm, e.Keys, parts)
	}
	return selectionOf(multiForm, e.Keys, parts)
}

// firstTrue is a || b: b is only evaluated where a is not taken.
func (l *lowering) firstTrue(e *jmespath.Expr, cur *operand) operand {
	a := l.eval(e.Args[0], cur).softly()
	return l.or(a, l.whereTrue(cel.Not(l.truthy(a)), func() operand { return l.eval(e.Args[1], cur).softly() }))
}

// or is a || b: b where a is null or falsy.
func (l *lowering) or(a, b operand) operand {
	if a.form == errorForm {
		return a
	}
	if a.form == litForm {
		if truth(a.lit) {
			return a
		}
		return b
	}
	if b.form == litForm {
		switch b := b.lit.(type) {
		case []any: // a list or [] is the list, empty where it is missing
			if len(b) == 0 {
				if s := l.sequence(a); s != nil && (a.form == sequenceForm || a.v.kind() == schema.List) {
					return sequenceOf(orEmpty{s})
				}
			}
		}
	}
	if isPredicate(a) && isPredicate(b) {
		return boolOf(cel.Or(a.v.expr.AsBool(), b.v.expr.AsBool()))
	}
	return l.orWithin(a, b, nil)
}

// orWithin is or in a branch of a choice. What was asked on the way there is known: of
// v || x || v the last v is falsy, so v || x || v || y is v || x || y.
func (l *lowering) orWithin(a, b operand, way answers) operand {
	switch {
	case a.form == choiceForm:
		return a.with(l.orWithin(*a.then, b, way.and(a.c)), l.orWithin(*a.els, b, way.without(*a.then, a.c)))
	case a.form == errorForm:
		return a
	}
	taken := l.truthy(a)
	if a.form == placeForm && a.v.kind() == schema.Int {
		taken = a.v.found() // never falsy
	}
	if is, known := way.of(taken); known && !is {
		return way.left(b)
	}
	chosen := a.truthyNow(taken)
	return choice(taken, chosen, way.without(chosen, taken).left(b))
}

// isPredicate tells that j is a boolean that an expression of ours gives.
func isPredicate(j operand) bool {
	return j.form == placeForm && j.v.certain() && j.v.kind() == schema.Bool && j.v.origin == fromPredicate
}

// rawString is a '...' that holds variables: a text, whatever they are.
func (l *lowering) rawString(t *jmespath.Template) operand {
	return l.inEach(l.template(t), l.toString)
}

// queryOutside is query of an expression that stands outside {{ }}.
func (l *lowering) queryOutside(e *jmespath.Expr) operand {
	defer l.restore(l.environment)
	l.deleteRewrite = false
	return l.query(e)
}

// query is an expression on the whole context.
func (l *lowering) query(e *jmespath.Expr) operand {
	defer l.restore(l.environment)
	l.loaded = map[string]loadedEntry{}
	j := l.eval(e, nil)
	l.loadMentioned(e)
	j = l.whereLoaded(e, j)
	return l.whereImagesLoaded(e, j)
}
