package compare

import (
	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/schema"
	"github.com/kvap/kvap/translate/internal/read"
	"github.com/kvap/kvap/translate/internal/scalar"
)

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
