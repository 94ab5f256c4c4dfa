package translate

import (
	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/jmespath"
	"github.com/kvap/kvap/schema"
	"github.com/kvap/kvap/translate/internal/scalar"
)

// relationOf is the relation that a comparator asks for.
func relationOf(c jmespath.Comparator) scalar.Relation {
	switch c {
	case jmespath.Equal:
		return scalar.Equals
	case jmespath.NotEqual:
		return scalar.Differs
	case jmespath.Less:
		return scalar.Less
	case jmespath.LessEqual:
		return scalar.LessEqual
	case jmespath.Greater:
		return scalar.Greater
	}
	return scalar.GreaterEqual
}

// compare is a comparison. Orders are null, hence false, of anything but numbers.
func (l *lowering) compare(op scalar.Relation, a, b operand) operand {
	if b.form != litForm && a.form == litForm {
		a, b = b, a
		op = op.Mirrored()
	}
	if op == scalar.Equals || op == scalar.Differs {
		eq := l.equal(a, b)
		if op == scalar.Differs {
			eq = cel.Not(eq)
		}
		return boolOf(eq)
	}
	return l.comparison(l.order(op, a, b), cel.And(l.isNumber(a), l.isNumber(b)))
}

// comparison is the order of two values, which is null unless both are numbers.
func (l *lowering) comparison(order, numbers cel.Bool) operand {
	if known, ok := numbers.Const(); ok && !known {
		return litOf(nil)
	} else if ok {
		return boolOf(order)
	}
	j := operandAt(placeOf(order.Value, &schema.Type{Kind: schema.Bool}).from(fromOrdering))
	j.v.guards = []guard{{cond: numbers, shape: true}}
	return j
}

// isNumber is: j is there and a number.
func (l *lowering) isNumber(j operand) cel.Bool {
	return l.holds(j, false, pred{
		lit: func(v any) cel.Bool { _, ok := scalar.Float(v); return cel.Lit(ok) },
		value: func(x cel.Value, t *schema.Type) cel.Bool {
			switch kindOf(t) {
			case schema.Int, schema.Number:
				return cel.True()
			case schema.IntOrString:
				return typeIs(x, "int")
			case schema.Any:
				return isNumber(x)
			}
			return cel.False()
		},
		sequence: func(sequence) cel.Bool { return cel.False() },
	})
}

// equal is JMESPath's ==, type strict; numbers are numbers.
func (l *lowering) equal(a, b operand) cel.Bool {
	if b.form != litForm {
		return l.equalValues(a, b)
	}
	want := b.lit
	return l.holds(a, false, pred{
		lit: func(v any) cel.Bool { return cel.Lit(scalar.Same(v, want)) },
		value: func(x cel.Value, t *schema.Type) cel.Bool {
			if !couldEqual(t, want) {
				return cel.False()
			}
			if b, ok := want.(bool); ok && kindOf(t) == schema.Bool {
				return isBool(x, t, b)
			}
			w, ok := l.literalTree(want)
			if !ok {
				panic(l.unsupported("a comparison with this literal"))
			}
			return x.Eq(w)
		},
		sequence: func(s sequence) cel.Bool { return l.sequenceEquals(s, want) },
		neutral:  others(want),
	})
}

func (l *lowering) sequenceEquals(s sequence, want any) cel.Bool {
	list, ok := want.([]any)
	if !ok {
		return cel.False()
	}
	if len(list) == 0 {
		return cel.Not(s.quantify(l, cel.ForSome, false, func(operand) cel.Bool { return cel.True() }))
	}
	for _, item := range list {
		if !couldEqual(s.elem(), item) {
			return cel.False()
		}
	}
	if len(list) > 1 {
		l.mustBeOrdered(sequenceOf(s))
	}
	got, ok := s.list(l, false)
	w, ok2 := l.literalTree(want)
	if !ok || !ok2 {
		panic(l.unsupported("the comparison of a nested projection, before Kubernetes 1.35"))
	}
	return got.Eq(w)
}

// others are literals unlike v, to stand in for a missing value.
func others(v any) func(*schema.Type) []any {
	return func(*schema.Type) []any {
		switch x := v.(type) {
		case string:
			return []any{x, x + "-"}
		case float64:
			return []any{int64(x), int64(x) + 1}
		case bool:
			return []any{!x}
		}
		return nil
	}
}

func couldEqual(t *schema.Type, lit any) bool {
	switch lit := lit.(type) {
	case nil:
		return kindOf(t) == schema.Any
	case bool:
		return kindOf(t) == schema.Bool || kindOf(t) == schema.Any
	case string:
		return kindOf(t) == schema.String || kindOf(t) == schema.Any || kindOf(t) == schema.IntOrString
	case float64, int64:
		k := kindOf(t)
		if f, ok := lit.(float64); ok && f != float64(int64(f)) && (k == schema.Int || k == schema.IntOrString) {
			return false
		}
		return k == schema.Int || k == schema.Number || k == schema.Any || k == schema.IntOrString
	case []any:
		return kindOf(t) == schema.List || kindOf(t) == schema.Any
	}
	return kindOf(t) == schema.Any || kindOf(t) == schema.Map || kindOf(t) == schema.Object
}

// equalValues compares two values that are both of the request.
func (l *lowering) equalValues(a, b operand) cel.Bool {
	if a.form == choiceForm {
		return cel.CondBool(a.c, l.equalValues(*a.then, b), l.equalValues(*a.els, b))
	}
	if b.form == choiceForm {
		return cel.CondBool(b.c, l.equalValues(a, *b.then), l.equalValues(a, *b.els))
	}
	if b.form == litForm {
		return l.equal(a, b)
	}
	if a.form == litForm {
		return l.equal(b, a)
	}
	l.mustBeOrdered(a)
	l.mustBeOrdered(b)
	x, ok := l.expr(a.settled())
	y, ok2 := l.expr(b.settled())
	if !ok || !ok2 {
		panic(l.unsupported("this comparison of two values"))
	}
	pa, pb := l.present(a), l.present(b)
	same := x.Eq(y)
	if ak, bk := kindOf(a.typ()), kindOf(b.typ()); ak != bk && !ofSeveralTypes(ak) && !ofSeveralTypes(bk) {
		same = cel.False()
		if numericKind(a.typ()) && numericKind(b.typ()) {
			same = dyn(x).Eq(dyn(y))
		}
	}
	if pa.IsTrue() && pb.IsTrue() {
		return same
	}
	return cel.Or(cel.And(pa, pb, same), cel.And(cel.Not(pa), cel.Not(pb)))
}

func numericKind(t *schema.Type) bool {
	return kindOf(t) == schema.Int || kindOf(t) == schema.Number
}

func (l *lowering) order(op scalar.Relation, a, b operand) cel.Bool {
	want, ok := b.lit.(float64)
	if b.form != litForm || !ok {
		if b.form == litForm {
			return cel.False()
		}
		panic(l.unsupported("the order of two values of the request in a query"))
	}
	n, exact := cel.Double(want), want == float64(int64(want))
	if exact {
		n = cel.Int(int64(want))
	}
	return l.holds(a, false, pred{
		lit: func(v any) cel.Bool {
			f, ok := scalar.Float(v)
			return cel.Lit(ok && op.Holds(scalar.CompareFloats(f, want)))
		},
		value: func(x cel.Value, t *schema.Type) cel.Bool {
			switch kindOf(t) {
			case schema.Int, schema.Number:
				return x.Compare(cel.Operator(op), n)
			case schema.IntOrString:
				return cel.And(typeIs(x, "int"), x.Compare(cel.Operator(op), n))
			case schema.Any:
				return cel.And(isNumber(x), x.Compare(cel.Operator(op), n))
			}
			return cel.False()
		},
		sequence: func(sequence) cel.Bool { return cel.False() },
	})
}
