package translate

import (
	"slices"

	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/schema"
	"github.com/kvap/kvap/translate/internal/native"
	"github.com/kvap/kvap/translate/internal/scalar"
)

// conditionEquals is Equals.
func (l *lowering) conditionEquals(key, value operand) cel.Bool {
	if value.form != litForm {
		return l.equalsVariable(key, value)
	}
	want := value.lit
	return l.holds(key, true, pred{
		lit: func(v any) cel.Bool { return cel.Lit(scalar.Equal(v, want)) },
		value: func(x cel.Value, t *schema.Type) cel.Bool {
			return l.equalsLiteral(x, t, want)
		},
		sequence: func(s sequence) cel.Bool { return l.sequenceEquals(s, want) },
		neutral:  neutralsOf(value),
		standIn:  func(v any) cel.Bool { return cel.Lit(equalsAsData(v, want)) },
	})
}

// equalsLiteral is Equals of a value that is there.
func (l *lowering) equalsLiteral(x cel.Value, t *schema.Type, want any) cel.Bool {
	switch kindOf(t) {
	case schema.Bool:
		b, ok := want.(bool)
		return cel.And(cel.Lit(ok), isBool(x, t, b))
	case schema.Int, schema.Number:
		f, ok := scalar.EqualNumber(want)
		if !ok || kindOf(t) == schema.Int && f != float64(int64(f)) {
			return cel.False()
		}
		return l.equalsNumber(x, f)
	case schema.String:
		text, ok := want.(string)
		return cel.And(cel.Lit(ok), equalsText(x, t, text))
	case schema.IntOrString, schema.Any:
		return l.perType(x, t, want)
	case schema.List:
		w, ok := l.literalTree(want)
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
	w, ok := l.literalTree(m)
	if !ok {
		panic(l.unsupported("this comparison with a map"))
	}
	return dyn(x).Eq(w)
}

// perType dispatches Equals at run time.
func (l *lowering) perType(x cel.Value, t *schema.Type, want any) cel.Bool {
	switch w := want.(type) {
	case bool:
		return x.Eq(cel.Lit(w).Value)
	case float64:
		return l.equalsNumber(x, w)
	case string:
		text := equalsText(x, t, w)
		if readsOf(w, t) != scalar.AsText || scalar.IsWild(w) {
			text = cel.And(isString(x), text)
		}
		if f, ok := scalar.EqualNumber(want); ok {
			return cel.Or(text, l.equalsNumber(x, f))
		}
		return text
	case nil:
		return cel.False()
	}
	tree, ok := l.literalTree(want)
	if !ok {
		panic(l.unsupported("this comparison"))
	}
	return x.Eq(tree)
}

func (l *lowering) equalsNumber(x cel.Value, f float64) cel.Bool {
	if f == float64(int64(f)) {
		return x.Eq(cel.Int(int64(f)))
	}
	return x.Eq(cel.Double(f))
}

// equalsText is Equals of a text: the value is read as the literal asks, or is a wildcard.
func equalsText(x cel.Value, t *schema.Type, want string) cel.Bool {
	switch {
	case readsOf(want, t) != scalar.AsText:
		return measured(x, t, scalar.Equals, want)
	case scalar.IsWild(want):
		return native.Matches(x, want)
	}
	return x.Eq(cel.String(want))
}

// equalsAsData is equalsLiteral of a value that is known.
func equalsAsData(v, want any) bool {
	text, ok := v.(string)
	if !ok {
		return scalar.Equal(v, want)
	}
	literal, ok := want.(string)
	return ok && scalar.EqualText(text, literal)
}

// equalsVariable is Equals where the value is of the request too: what is the same is
// equal, but null.
func (l *lowering) equalsVariable(key, value operand) cel.Bool {
	switch {
	case key.form == choiceForm:
		then, els := l.eitherWay(key.c,
			func() cel.Bool { return l.equalsVariable(*key.then, value) },
			func() cel.Bool { return l.equalsVariable(*key.els, value) })
		if then.IsFalse() && els.IsFalse() { // whoever asks for that reads the key and the value
			return then
		}
		return cel.CondBool(key.c, then, els)
	case key.form == litForm && key.lit == nil:
		return cel.False()
	case isConfigured(value):
		return l.equalsConfigured(key, value)
	case key.form == litForm && isWord(key.lit):
		return l.literalEquals(key.lit, value)
	}
	l.mustBeOrdered(key)
	l.mustBeOrdered(value)
	k, keyThere, ok := l.unlessNull(key)
	v, valueThere, ok2 := l.unlessNull(value)
	if !ok || !ok2 {
		panic(l.unsupported("this comparison of two values"))
	}
	l.noteSame(key, value)
	return cel.And(keyThere, valueThere, l.sameData(key, value, k, v))
}

// equalsConfigured is Equals where the value is a text of the configuration: a pattern for
// texts. What it is to a number or a quantity is only known at run time.
func (l *lowering) equalsConfigured(key, value operand) cel.Bool {
	l.note(diag.RuntimeText, "the text of the ConfigMap is known only at run time; it is a pattern, and no quantity or duration")
	t := l.namedText(value)
	return cel.And(t.notNull, l.holds(key, true, pred{
		lit: func(v any) cel.Bool {
			switch v := v.(type) {
			case string:
				return cel.String(v).MatchesValue(t.pattern())
			case float64:
				panic(l.notText())
			}
			return cel.False()
		},
		value: func(x cel.Value, typ *schema.Type) cel.Bool {
			switch k := kindOf(typ); {
			case k == schema.List, isMapKind(k), k == schema.Bool:
				return cel.False()
			case k == schema.String && !isQuantityType(typ) && !isDurationType(typ):
				return x.MatchesValue(t.pattern())
			}
			panic(l.notText())
		},
		sequence: func(sequence) cel.Bool { return cel.False() },
	}))
}

// notText refuses a comparison of what is no text.
func (l *lowering) notText() refusal {
	return l.unsupported("the comparison of a value that is no text with one that is only known at run time")
}

// sameData is: two values of the request, neither of which is missing, are the same and not
// null.
func (l *lowering) sameData(key, value operand, k, v cel.Value) cel.Bool {
	kt, vt := kindFound(key), kindFound(value)
	switch {
	case isQuantityType(key.typ()) && isQuantityType(value.typ()):
		return cel.Func(cel.FuncQuantity, k).Call(cel.FuncCompareTo, cel.Func(cel.FuncQuantity, v)).Eq(cel.Int(0))
	case isDurationType(key.typ()) && isDurationType(value.typ()):
		return cel.Func(cel.FuncDuration, k).Eq(cel.Func(cel.FuncDuration, v))
	case kt == vt && kt != schema.Any, numericKind(key.typ()) && numericKind(value.typ()):
		return k.Eq(v)
	case ofSeveralTypes(kt) || ofSeveralTypes(vt):
		same := dyn(k).Eq(v)
		if kt == schema.Any && vt == schema.Any && !l.knows(cel.Not(isNull(k))) {
			return cel.And(cel.Not(isNull(k)), same)
		}
		return same
	case isMapKind(kt) && isMapKind(vt):
		return dyn(k).Eq(dyn(v))
	}
	return cel.False()
}

// noteSame tells, once for a rule, of two values that Kyverno may read otherwise than they
// are: texts, as far as is known.
func (l *lowering) noteSame(a, b operand) {
	told := l.notes != nil && slices.ContainsFunc(*l.notes, func(d diag.Diagnostic) bool { return d.Code == diag.TextEquality })
	if told || !mayBeText(a.typ()) || !mayBeText(b.typ()) || isQuantityType(a.typ()) && isQuantityType(b.typ()) {
		return
	}
	l.note(diag.TextEquality, "two values of the request are compared: to Kyverno 1h equals 60m and a* is a pattern, here they are equal where they are the same")
}

func isMapKind(k schema.Kind) bool { return k == schema.Map || k == schema.Object }

// literalEquals is Equals of a literal and a value of the request, which is no pattern.
func (l *lowering) literalEquals(lit any, value operand) cel.Bool {
	text, isText := lit.(string)
	return l.holds(value, true, pred{
		lit: func(v any) cel.Bool { return cel.Lit(scalar.Equal(lit, v)) },
		value: func(x cel.Value, t *schema.Type) cel.Bool {
			switch {
			case isText && readsOf(text, t) != scalar.AsText:
				return cel.And(textIn(x, t), measured(x, t, scalar.Equals, text))
			case !couldEqual(t, lit) && kindOf(t) != schema.String:
				return cel.False()
			}
			if f, ok := scalar.Float(lit); ok {
				return numberEquals(l, x, t, f)
			}
			if b, ok := lit.(bool); ok && kindOf(t) == schema.Bool {
				return isBool(x, t, b)
			}
			if !isText && kindOf(t) == schema.String {
				return cel.False()
			}
			w, _ := l.literalTree(lit)
			return x.Eq(w)
		},
		sequence: func(sequence) cel.Bool { return cel.False() },
	})
}

// textIn is: x, of a type, is a text.
func textIn(x cel.Value, t *schema.Type) cel.Bool {
	switch k := kindOf(t); {
	case k == schema.String:
		return cel.True()
	case ofSeveralTypes(k):
		return isString(x)
	}
	return cel.False()
}

// numberEquals is: x is a number, or a text that reads as it.
func numberEquals(l *lowering, x cel.Value, t *schema.Type, f float64) cel.Bool {
	text := cel.And(x.Matches(decimalText), cel.Func(cel.FuncDouble, x).Eq(cel.Double(f)))
	switch kindOf(t) {
	case schema.String:
		return text
	case schema.Any:
		return cel.Or(l.equalsNumber(x, f), cel.And(isString(x), text))
	}
	return l.equalsNumber(x, f)
}

// unlessNull is the value of j where it is not null, and whether it is not; not ok where
// no expression gives it.
func (l *lowering) unlessNull(j operand) (v cel.Value, there cel.Bool, ok bool) {
	switch j.form {
	case sequenceForm: // a projection of what is missing is null
		v, ok = j.s.list(l, false)
		return v, cel.Not(j.s.null()), ok
	case placeForm:
		_, ok = l.expr(j)
		return j.v.expr, j.v.shaped(), ok
	}
	v, ok = l.expr(j)
	return v, cel.True(), ok
}

// isBool is: the boolean x of type t is b.
func isBool(x cel.Value, t *schema.Type, b bool) cel.Bool {
	if b {
		return isTrue(x, t)
	}
	return cel.Not(isTrue(x, t))
}
