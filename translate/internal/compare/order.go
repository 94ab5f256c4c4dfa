package compare

import (
	"cmp"

	"github.com/blang/semver/v4"

	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/schema"
	"github.com/kvap/kvap/translate/internal/read"
	"github.com/kvap/kvap/translate/internal/scalar"
)

// Order is GreaterThan and its kin.
func Order(l *read.Lowering, op scalar.Relation, key, value read.Operand) cel.Bool {
	if value.Form != read.LitForm {
		return orderVariable(l, op, key, value)
	}
	want := value.Lit
	if hasNoOrder(want) {
		panic(noOrder(l, key, value))
	}
	return read.Holds(l, key, true, read.Table{
		Lit:   func(v any) cel.Bool { return cel.Lit(scalar.Ordered(op, v, want)) },
		Value: func(x cel.Value, t *schema.Type) cel.Bool { return orderLiteral(l, op, x, t, want) },
	})
}

// hasNoOrder tells of a literal that comes before and after nothing: which is false of the
// policy's own, and an error if the request gives it, as its operation.
func hasNoOrder(lit any) bool {
	text, isText := lit.(string)
	_, isBool := lit.(bool)
	_, err := semver.Parse(text)
	return isBool || isText && err != nil && scalar.ReadsOf(text, false) == scalar.AsText
}

func orderLiteral(l *read.Lowering, op scalar.Relation, x cel.Value, t *schema.Type, want any) cel.Bool {
	ordered := cel.And(numberIn(x, t), orderNumber(op, x, t, want))
	if k := read.KindOf(t); k == schema.String || k == schema.Any {
		ordered = cel.Or(ordered, cel.And(textIn(x, t), orderString(l, op, x, t, want)))
	}
	return ordered
}

// orderNumber is a number key.
func orderNumber(op scalar.Relation, x cel.Value, t *schema.Type, want any) cel.Bool {
	f, ok := scalar.Bound(want)
	if !ok {
		return cel.False()
	}
	return x.Compare(cel.Operator(op), read.NumberFor(t, f))
}

// orderString is a text key, which is read as the literal is.
func orderString(l *read.Lowering, op scalar.Relation, x cel.Value, t *schema.Type, want any) cel.Bool {
	switch w := want.(type) {
	case float64:
		return cel.And(x.Matches(read.DecimalText), cel.Func(cel.FuncDouble, x).Compare(cel.Operator(op), cel.Double(w)))
	case string:
		if read.ReadsOf(w, t) != scalar.AsText {
			return read.Measured(x, t, op, w)
		}
		if !l.Release.Has("semver") {
			panic(l.Refuse(diag.NeedsNewer, "comparing versions needs Kubernetes 1.34"))
		}
		same := cel.Func(cel.FuncSemver, x).Call(cel.FuncCompareTo, cel.Func(cel.FuncSemver, cel.String(w))).Compare(cel.Operator(op), cel.Int(0))
		return cel.And(cel.Func(cel.FuncIsSemver, x).AsBool(), same)
	}
	return cel.False()
}

// DurationOrder is the deprecated Duration operators, of texts.
func DurationOrder(l *read.Lowering, op scalar.Relation, key, value read.Operand) cel.Bool {
	bound, _ := value.Lit.(string)
	d, ok := scalar.Duration(bound)
	if value.Form != read.LitForm || !ok {
		panic(l.Refuse(diag.NoOperator, "a Duration operator has a native form only with a duration as its value"))
	}
	return read.Holds(l, key, true, read.Table{
		Lit: func(v any) cel.Bool {
			text, _ := v.(string)
			k, ok := scalar.Duration(text)
			if _, number := scalar.Float(v); number {
				panic(l.Refuse(diag.NoOperator, "a Duration operator has a native form only for texts"))
			}
			return cel.Lit(ok && op.Holds(cmp.Compare(k, d)))
		},
		Value: func(x cel.Value, t *schema.Type) cel.Bool {
			if read.KindOf(t) != schema.String {
				panic(l.Refuse(diag.NoOperator, "a Duration operator has a native form only for texts"))
			}
			return cel.And(read.IsDuration(x), read.CompareDuration(x, op, bound))
		},
	})
}

// orderVariable is the order of two values of the request, or of a literal and one. What the
// schema says are numbers, quantities or durations has an order. Of anything else there is
// none, which is an error, or it is only known at run time; nothing is ordered with null.
func orderVariable(l *read.Lowering, op scalar.Relation, key, value read.Operand) cel.Bool {
	switch {
	case key.Form == read.ChoiceForm:
		return cel.CondBool(key.C, orderVariable(l, op, *key.Then, value), orderVariable(l, op, *key.Els, value))
	case key.Form == read.LitForm && key.Lit == nil:
		return cel.False()
	case key.Form == read.LitForm && !hasNoOrder(key.Lit):
		return read.Holds(l, value, true, read.Table{
			Lit:   func(v any) cel.Bool { return cel.Lit(scalar.Ordered(op, key.Lit, v)) },
			Value: func(x cel.Value, t *schema.Type) cel.Bool { return orderLiteral(l, op.Mirrored(), x, t, key.Lit) },
		})
	case key.Form != read.PlaceForm || value.Form != read.PlaceForm:
		panic(noOrder(l, key, value))
	}
	k, keyThere, ok := unlessNull(l, key)
	v, valueThere, ok2 := unlessNull(l, value)
	if !ok || !ok2 {
		panic(noOrder(l, key, value))
	}
	there := cel.And(keyThere, valueThere)
	switch {
	case read.IsQuantityType(key.Typ()) && read.IsQuantityType(value.Typ()):
		return cel.And(there, read.OrderQuantities(op, cel.Func(cel.FuncQuantity, k), cel.Func(cel.FuncQuantity, v)))
	case read.IsDurationType(key.Typ()) && read.IsDurationType(value.Typ()):
		return cel.And(there, cel.Func(cel.FuncDuration, k).Compare(cel.Operator(op), cel.Func(cel.FuncDuration, v)))
	case numericKind(key.Typ()) && numericKind(value.Typ()):
		return cel.And(there, k.Compare(cel.Operator(op), v))
	}
	panic(noOrder(l, key, value))
}

// noOrder refuses a comparison that the webhook has to judge: by what a text of the
// configuration is at the time, or as false or an error.
func noOrder(l *read.Lowering, key, value read.Operand) read.Refusal {
	if key.Some(read.IsConfigured) || value.Some(read.IsConfigured) {
		return l.Unsupported("the order of a value and a text of the cluster's configuration, which may be a number, a quantity or a duration,")
	}
	return l.Refuse(diag.NoExpression, "values have no order unless both are numbers, quantities or durations, by the schema or the policy's own text; "+
		"this comparison is false or an error (deviation 15; to_number() makes a number of a text), or its order is only known at run time")
}

// Compare is a comparison. Orders are null of anything but numbers.
func Compare(l *read.Lowering, op scalar.Relation, a, b read.Operand) read.Operand {
	if b.Form != read.LitForm && a.Form == read.LitForm {
		a, b = b, a
		op = op.Mirrored()
	}
	if op == scalar.Equals || op == scalar.Differs {
		eq := equal(l, a, b)
		if op == scalar.Differs {
			eq = cel.Not(eq)
		}
		return read.BoolOf(eq)
	}
	order, numbers := order(l, op, a, b), cel.And(isNumber(l, a), isNumber(l, b))
	switch {
	case numbers.IsFalse():
		return read.LitOf(nil)
	case numbers.IsTrue():
		return read.BoolOf(order)
	}
	j := read.OperandAt(read.PlaceOf(order.Value, &schema.Type{Kind: schema.Bool}).From(read.FromOrdering))
	j.V.Guards = []read.Guard{{Cond: numbers, Shape: true}}
	return j
}

// isNumber is: j is there and a number.
func isNumber(l *read.Lowering, j read.Operand) cel.Bool {
	return read.Holds(l, j, false, read.Table{
		Lit:   func(v any) cel.Bool { _, ok := scalar.Float(v); return cel.Lit(ok) },
		Value: numberIn,
	})
}

// numberIn is: x, of a type, is a number.
func numberIn(x cel.Value, t *schema.Type) cel.Bool {
	switch read.KindOf(t) {
	case schema.Int, schema.Number:
		return cel.True()
	case schema.IntOrString:
		return read.TypeIs(x, "int")
	case schema.Any:
		return read.IsNumber(x)
	}
	return cel.False()
}

// equal is JMESPath's ==, type strict; numbers are numbers.
func equal(l *read.Lowering, a, b read.Operand) cel.Bool {
	if b.Form != read.LitForm {
		return equalValues(l, a, b)
	}
	want := b.Lit
	return read.Holds(l, a, false, read.Table{
		Lit: func(v any) cel.Bool { return cel.Lit(scalar.Same(v, want)) },
		Value: func(x cel.Value, t *schema.Type) cel.Bool {
			if !couldEqual(t, want) {
				return cel.False()
			}
			if b, ok := want.(bool); ok && read.KindOf(t) == schema.Bool {
				return isBool(x, t, b)
			}
			w, ok := read.LiteralTree(l, want)
			if !ok {
				panic(l.Unsupported("a comparison with this literal"))
			}
			return x.Eq(w)
		},
		Sequence: func(s read.Sequence) cel.Bool { return sequenceEquals(l, s, want) },
	})
}

func sequenceEquals(l *read.Lowering, s read.Sequence, want any) cel.Bool {
	list, ok := want.([]any)
	if !ok {
		return cel.False()
	}
	if len(list) == 0 {
		return cel.Not(s.Quantify(l, cel.ForSome, false, func(read.Operand) cel.Bool { return cel.True() }))
	}
	for _, item := range list {
		if !couldEqual(s.Elem(), item) {
			return cel.False()
		}
	}
	if len(list) > 1 {
		read.MustBeOrdered(l, read.SequenceOf(s))
	}
	got, ok := read.WholeList(l, s)
	w, ok2 := read.LiteralTree(l, want)
	if !ok || !ok2 {
		panic(l.Unsupported("the comparison of a nested projection, before Kubernetes 1.35"))
	}
	return got.Eq(w)
}

func couldEqual(t *schema.Type, lit any) bool {
	k := read.KindOf(t)
	if k == schema.Any {
		return true
	}
	switch lit := lit.(type) {
	case nil:
		return false
	case bool:
		return k == schema.Bool
	case string:
		return k == schema.String || k == schema.IntOrString
	case float64:
		whole := lit == float64(int64(lit))
		return k == schema.Number || whole && (k == schema.Int || k == schema.IntOrString)
	case int64:
		return k == schema.Number || k == schema.Int || k == schema.IntOrString
	case []any:
		return k == schema.List
	}
	return isMapKind(k)
}

// equalValues compares two values that are both of the request.
func equalValues(l *read.Lowering, a, b read.Operand) cel.Bool {
	if a.Form == read.ChoiceForm {
		return cel.CondBool(a.C, equalValues(l, *a.Then, b), equalValues(l, *a.Els, b))
	}
	if b.Form == read.ChoiceForm {
		return cel.CondBool(b.C, equalValues(l, a, *b.Then), equalValues(l, a, *b.Els))
	}
	if b.Form == read.LitForm {
		return equal(l, a, b)
	}
	if a.Form == read.LitForm {
		return equal(l, b, a)
	}
	read.MustBeOrdered(l, a)
	read.MustBeOrdered(l, b)
	x, ok := read.Expr(l, a.Settled())
	y, ok2 := read.Expr(l, b.Settled())
	if !ok || !ok2 {
		panic(l.Unsupported("this comparison of two values"))
	}
	pa, pb := read.Present(l, a), read.Present(l, b)
	same := x.Eq(y)
	if ak, bk := kindCompared(a), kindCompared(b); ak != bk && !ofSeveralTypes(ak) && !ofSeveralTypes(bk) {
		same = cel.False()
		if numericKind(a.Typ()) && numericKind(b.Typ()) {
			same = read.Dyn(x).Eq(read.Dyn(y))
		}
	}
	if pa.IsTrue() && pb.IsTrue() {
		return same
	}
	return cel.Or(cel.And(pa, pb, same), cel.And(cel.Not(pa), cel.Not(pb)))
}

// kindCompared is the kind of a value, which of [a, b] is a list.
func kindCompared(j read.Operand) schema.Kind {
	if j.Form == read.MultiForm {
		return schema.List
	}
	return read.KindOf(j.Typ())
}

func numericKind(t *schema.Type) bool {
	return read.KindOf(t) == schema.Int || read.KindOf(t) == schema.Number
}

func order(l *read.Lowering, op scalar.Relation, a, b read.Operand) cel.Bool {
	want, ok := b.Lit.(float64)
	switch {
	case b.Form != read.LitForm:
		panic(l.Unsupported("the order of two values of the request in a query"))
	case !ok:
		return cel.False()
	}
	return read.Holds(l, a, false, read.Table{
		Lit: func(v any) cel.Bool {
			f, ok := scalar.Float(v)
			return cel.Lit(ok && op.Holds(scalar.CompareFloats(f, want)))
		},
		Value: func(x cel.Value, t *schema.Type) cel.Bool {
			return cel.And(numberIn(x, t), x.Compare(cel.Operator(op), read.NumberFor(t, want)))
		},
	})
}
