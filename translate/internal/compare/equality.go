package compare

import (
	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/schema"
	"github.com/kvap/kvap/translate/internal/native"
	"github.com/kvap/kvap/translate/internal/read"
	"github.com/kvap/kvap/translate/internal/scalar"
)

// Equals is Equals.
func Equals(l *read.Lowering, key, value read.Operand) cel.Bool {
	if value.Form != read.LitForm {
		return equalsVariable(l, key, value)
	}
	want := value.Lit
	return read.Holds(l, key, true, read.Table{
		Lit: func(v any) cel.Bool { return cel.Lit(scalar.Equal(v, want)) },
		Value: func(x cel.Value, t *schema.Type) cel.Bool {
			return equalsLiteral(l, x, t, want)
		},
		Sequence: func(s read.Sequence) cel.Bool { return sequenceEquals(l, s, want) },
	})
}

// equalsLiteral is Equals of a value that is there.
func equalsLiteral(l *read.Lowering, x cel.Value, t *schema.Type, want any) cel.Bool {
	switch read.KindOf(t) {
	case schema.Bool:
		b, ok := want.(bool)
		return cel.And(cel.Lit(ok), isBool(x, t, b))
	case schema.Int, schema.Number:
		f, ok := scalar.Number(want)
		if !ok || read.KindOf(t) == schema.Int && f != float64(int64(f)) {
			return cel.False()
		}
		return equalsNumber(x, t, f)
	case schema.String:
		text, ok := want.(string)
		return cel.And(cel.Lit(ok), equalsText(x, t, text))
	case schema.IntOrString, schema.Any:
		return perType(l, x, t, want)
	case schema.List:
		w, ok := read.LiteralTree(l, want)
		items, isList := want.([]any)
		for _, item := range items {
			ok = ok && couldEqual(t.Elem, item)
		}
		if !isList || !ok {
			return cel.False()
		}
		return x.Eq(w)
	}
	m, isMap := want.(map[string]any)
	if !isMap {
		return cel.False()
	}
	w, ok := read.LiteralTree(l, m)
	if !ok {
		panic(l.Unsupported("this comparison with a map"))
	}
	return read.Dyn(x).Eq(w)
}

// perType dispatches Equals at run time.
func perType(l *read.Lowering, x cel.Value, t *schema.Type, want any) cel.Bool {
	switch w := want.(type) {
	case bool:
		return x.Eq(cel.Lit(w).Value)
	case float64:
		return equalsNumber(x, t, w)
	case string:
		text := equalsText(x, t, w)
		if read.ReadsOf(w, t) != scalar.AsText || scalar.IsWild(w) {
			text = cel.And(read.IsString(x), text)
		}
		if f, ok := scalar.Number(want); ok {
			return cel.Or(text, equalsNumber(x, t, f))
		}
		return text
	case nil:
		return cel.False()
	}
	tree, ok := read.LiteralTree(l, want)
	if !ok {
		panic(l.Unsupported("this comparison"))
	}
	return x.Eq(tree)
}

func equalsNumber(x cel.Value, t *schema.Type, f float64) cel.Bool {
	return x.Eq(read.NumberFor(t, f))
}

// equalsText is Equals of a text: the value is read as the literal asks, or is a wildcard.
func equalsText(x cel.Value, t *schema.Type, want string) cel.Bool {
	switch {
	case read.ReadsOf(want, t) != scalar.AsText:
		return read.Measured(x, t, scalar.Equals, want)
	case scalar.IsWild(want):
		return native.Matches(x, want)
	}
	return x.Eq(cel.String(want))
}

// equalsVariable is Equals where the value is of the request too: what is the same is
// equal, but null.
func equalsVariable(l *read.Lowering, key, value read.Operand) cel.Bool {
	switch {
	case key.Form == read.ChoiceForm:
		then, els := equalsVariable(l, *key.Then, value), equalsVariable(l, *key.Els, value)
		if then.IsFalse() && els.IsFalse() { // where both can be read
			return then
		}
		return cel.CondBool(key.C, then, els)
	case key.Form == read.LitForm && key.Lit == nil:
		return cel.False()
	case read.IsConfigured(value):
		return equalsConfigured(l, key, value)
	case key.Form == read.LitForm && isWord(key.Lit):
		return literalEquals(l, key.Lit, value)
	}
	read.MustBeOrdered(l, key)
	read.MustBeOrdered(l, value)
	k, keyThere, ok := unlessNull(l, key)
	v, valueThere, ok2 := unlessNull(l, value)
	if !ok || !ok2 {
		panic(l.Unsupported("this comparison of two values"))
	}
	NoteSame(l, key, value)
	return cel.And(keyThere, valueThere, sameData(l, key, value, k, v))
}

// equalsConfigured is Equals where the value is a text of the configuration: a pattern for
// texts. What it is to a number or a quantity is only known at run time.
func equalsConfigured(l *read.Lowering, key, value read.Operand) cel.Bool {
	l.Note(diag.RuntimeText, "the text of the ConfigMap is known only at run time; it is a pattern, and no quantity or duration")
	t := namedText(l, value)
	return cel.And(t.notNull, read.Holds(l, key, true, read.Table{
		Lit: func(v any) cel.Bool {
			switch v := v.(type) {
			case string:
				return cel.String(v).MatchesValue(t.pattern())
			case float64:
				panic(notText(l))
			}
			return cel.False()
		},
		Value: func(x cel.Value, typ *schema.Type) cel.Bool {
			switch k := read.KindOf(typ); {
			case k == schema.List, isMapKind(k), k == schema.Bool:
				return cel.False()
			case k == schema.String && !read.IsQuantityType(typ) && !read.IsDurationType(typ):
				return x.MatchesValue(t.pattern())
			}
			panic(notText(l))
		},
	}))
}

// notText refuses a comparison of what is no text.
func notText(l *read.Lowering) read.Refusal {
	return l.Unsupported("the comparison of a value that is no text with one that is only known at run time")
}

// sameData is: two values of the request, neither of which is missing, are the same and not
// null.
func sameData(l *read.Lowering, key, value read.Operand, k, v cel.Value) cel.Bool {
	kt, vt := kindFound(key), kindFound(value)
	switch {
	case read.IsQuantityType(key.Typ()) && read.IsQuantityType(value.Typ()):
		return cel.Func(cel.FuncQuantity, k).Call(cel.FuncCompareTo, cel.Func(cel.FuncQuantity, v)).Eq(cel.Int(0))
	case read.IsDurationType(key.Typ()) && read.IsDurationType(value.Typ()):
		return cel.Func(cel.FuncDuration, k).Eq(cel.Func(cel.FuncDuration, v))
	case kt == vt && kt != schema.Any, numericKind(key.Typ()) && numericKind(value.Typ()):
		return k.Eq(v)
	case ofSeveralTypes(kt) || ofSeveralTypes(vt):
		same := read.Dyn(k).Eq(v)
		if kt == schema.Any && vt == schema.Any && key.Form != read.MultiForm && !read.Knows(l, cel.Not(read.IsNull(k))) {
			return cel.And(cel.Not(read.IsNull(k)), same)
		}
		return same
	case isMapKind(kt) && isMapKind(vt):
		return read.Dyn(k).Eq(read.Dyn(v))
	}
	return cel.False()
}

// NoteSame tells, once for a rule, of two values that Kyverno may read otherwise than they
// are: texts, as far as is known.
func NoteSame(l *read.Lowering, a, b read.Operand) {
	if l.HasNoted(diag.TextEquality) || !mayBeText(a.Typ()) || !mayBeText(b.Typ()) || read.IsQuantityType(a.Typ()) && read.IsQuantityType(b.Typ()) {
		return
	}
	l.Note(diag.TextEquality, "two values of the request are compared: to Kyverno 1h equals 60m and a* is a pattern, here they are equal where they are the same")
}

func isMapKind(k schema.Kind) bool { return k == schema.Map || k == schema.Object }

// literalEquals is Equals of a literal and a value of the request, which is no pattern.
func literalEquals(l *read.Lowering, lit any, value read.Operand) cel.Bool {
	text, isText := lit.(string)
	return read.Holds(l, value, true, read.Table{
		Lit: func(v any) cel.Bool { return cel.Lit(scalar.Equal(lit, v)) },
		Value: func(x cel.Value, t *schema.Type) cel.Bool {
			switch {
			case isText && read.ReadsOf(text, t) != scalar.AsText:
				return cel.And(textIn(x, t), read.Measured(x, t, scalar.Equals, text))
			case !couldEqual(t, lit) && read.KindOf(t) != schema.String:
				return cel.False()
			}
			if f, ok := scalar.Float(lit); ok {
				return numberEquals(x, t, f)
			}
			if b, ok := lit.(bool); ok && read.KindOf(t) == schema.Bool {
				return isBool(x, t, b)
			}
			if !isText && read.KindOf(t) == schema.String {
				return cel.False()
			}
			w, _ := read.LiteralTree(l, lit)
			return x.Eq(w)
		},
	})
}

// textIn is: x, of a type, is a text.
func textIn(x cel.Value, t *schema.Type) cel.Bool {
	switch k := read.KindOf(t); {
	case k == schema.String:
		return cel.True()
	case ofSeveralTypes(k):
		return read.IsString(x)
	}
	return cel.False()
}

// numberEquals is: x is a number, or a text that reads as it.
func numberEquals(x cel.Value, t *schema.Type, f float64) cel.Bool {
	text := cel.And(x.Matches(read.DecimalText), cel.Func(cel.FuncDouble, x).Eq(cel.Double(f)))
	switch read.KindOf(t) {
	case schema.String:
		return text
	case schema.Any:
		return cel.Or(equalsNumber(x, t, f), cel.And(read.IsString(x), text))
	}
	return equalsNumber(x, t, f)
}

// unlessNull is the value of j where it is not null, and whether it is not; not ok where
// no expression gives it.
func unlessNull(l *read.Lowering, j read.Operand) (v cel.Value, there cel.Bool, ok bool) {
	switch j.Form {
	case read.SequenceForm: // a projection of what is missing is null
		v, ok = read.WholeList(l, j.S)
		return v, cel.Not(j.S.Null()), ok
	case read.PlaceForm:
		_, ok = read.Expr(l, j)
		return j.V.Expr, j.V.Shaped(), ok
	}
	v, ok = read.Expr(l, j)
	return v, cel.True(), ok
}

// isBool is: the boolean x of type t is b.
func isBool(x cel.Value, t *schema.Type, b bool) cel.Bool {
	if b {
		return read.IsTrue(x, t)
	}
	return cel.Not(read.IsTrue(x, t))
}

// kindFound is the kind of a value, where it is not null.
func kindFound(j read.Operand) schema.Kind {
	switch j.Lit.(type) {
	case []any:
		return schema.List
	case map[string]any:
		return schema.Map
	}
	return read.KindOf(j.Typ())
}

// ofSeveralTypes tells of a kind that stands for several types.
func ofSeveralTypes(k schema.Kind) bool { return k == schema.Any || k == schema.IntOrString }

// Scalar is: the value satisfies p, with the given verdict where it is missing.
// Of a list, every element must.
func Scalar(l *read.Lowering, v read.Place, p *policy.Node, missing bool) cel.Bool {
	if v.Never {
		return cel.Lit(missing)
	}
	settled := v.Settled()
	switch v.Kind() {
	case schema.List:
		all := func(x cel.Value) cel.Bool {
			return l.Binders.All(x, "item", func(e cel.Value) cel.Bool { return ScalarOne(l, read.PlaceOf(e, settled.Elem()), p, false) })
		}
		return v.Soft(missing, all)
	case schema.Object, schema.Map:
		return v.Soft(missing, func(cel.Value) cel.Bool { return cel.False() })
	}
	pred := func(x cel.Value) cel.Bool { return ScalarOne(l, read.PlaceOf(x, v.Typ), p, true) }
	return v.Soft(missing, pred)
}

// ScalarOne is: one value, which is there, satisfies p. lists tells whether a
// value of unknown type may be a list whose elements are looked at.
func ScalarOne(l *read.Lowering, v read.Place, p *policy.Node, lists bool) cel.Bool {
	switch v.Kind() {
	case schema.Object, schema.Map, schema.List:
		return cel.False()
	case schema.Any:
		one := scalarAny(l, v.Expr, p)
		if !lists {
			return one
		}
		each := l.Binders.All(v.Expr, "item", func(e cel.Value) cel.Bool { return scalarAny(l, e, p) })
		return cel.Or(one, cel.And(read.IsList(v.Expr), each))
	case schema.IntOrString:
		return byType(v.Expr, scalarInt(v.Expr, p), scalarString(v.Expr, p, v.Typ))
	case schema.Bool:
		return boolCases(v.Expr, literalSatisfies(true, p), literalSatisfies(false, p))
	case schema.Int:
		return scalarInt(v.Expr, p)
	case schema.Number:
		return scalarDouble(l, v.Expr, v.Typ, p)
	}
	return scalarString(v.Expr, p, v.Typ)
}

// byType is the verdict of the type that v, an int-or-string, has at run time.
func byType(v cel.Value, ofInt, ofText cel.Bool) cel.Bool {
	return cel.Or(cel.And(read.TypeIs(v, "int"), ofInt), cel.And(read.IsString(v), ofText))
}

// scalarAny dispatches over the types at run time.
func scalarAny(l *read.Lowering, v cel.Value, p *policy.Node) cel.Bool {
	switch p.Kind {
	case policy.Null:
		return read.Amongst(v, cel.Null(), cel.Lit(false).Value, cel.Int(0), cel.String(""))
	case policy.Bool:
		return v.Eq(cel.Lit(p.Bool).Value)
	case policy.Int, policy.Float:
		number := v.Eq(cel.Double(number(p)))
		if whole, ok := wholeNumber(p); ok {
			number = v.Eq(cel.Int(whole))
		}
		return cel.Or(number, cel.And(read.IsString(v), scalarString(v, p, read.AnyType())))
	}
	return patternAny(l, v, p.Str)
}

// boolCases is a predicate over a boolean, given its verdict for true and false.
func boolCases(v cel.Value, t, f bool) cel.Bool {
	switch {
	case t && f:
		return cel.True()
	case t:
		return v.AsBool()
	case f:
		return cel.Not(v.AsBool())
	}
	return cel.False()
}

func scalarInt(v cel.Value, p *policy.Node) cel.Bool {
	switch p.Kind {
	case policy.Null:
		return v.Eq(cel.Int(0))
	case policy.Int, policy.Float:
		whole, ok := wholeNumber(p)
		return cel.And(cel.Lit(ok), v.Eq(cel.Int(whole)))
	case policy.String:
		return patternInt(v, p.Str)
	}
	return cel.False()
}

func scalarDouble(l *read.Lowering, v cel.Value, t *schema.Type, p *policy.Node) cel.Bool {
	switch p.Kind {
	case policy.Null:
		return v.Eq(cel.Double(0))
	case policy.Int, policy.Float:
		return v.Eq(cel.Double(number(p)))
	case policy.String:
		return patternDouble(l, v, t, p.Str)
	}
	return cel.False()
}

func scalarString(v cel.Value, p *policy.Node, t *schema.Type) cel.Bool {
	number := read.KindOf(t) != schema.IntOrString // the text of which is none
	switch p.Kind {
	case policy.Null:
		return v.Eq(cel.String(""))
	case policy.Int:
		return cel.And(cel.Lit(number), v.Matches(read.IntegerText(p.Int)))
	case policy.Float:
		// the text of a number, as strconv.ParseFloat reads decimal ones
		return cel.And(cel.Lit(number), v.Matches(read.DecimalText), cel.Func(cel.FuncDouble, v).Eq(cel.Double(p.Float)))
	case policy.String:
		return patternString(v, p.Str, t)
	}
	return cel.False()
}

// SomeKey is: a key of the map matches.
func SomeKey(l *read.Lowering, v read.Place, key string) cel.Bool {
	found := l.Binders.Exists(v.Settled().Expr, "key", func(k cel.Value) cel.Bool { return native.Matches(k, key) })
	return cel.And(v.Found(), found)
}
