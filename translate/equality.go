package translate

import (
	"strings"

	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/schema"
	"github.com/kvap/kvap/translate/internal/native"
	"github.com/kvap/kvap/translate/internal/scalar"
)

// conditionEquals is Equals.
func (l *lowering) conditionEquals(key, value operand) cel.Bool {
	if isConfigured(value) {
		return l.equalsConfigured(key, value)
	}
	if value.form != litForm {
		return l.equalsVariable(key, value)
	}
	want := value.lit
	if key.form == placeForm && key.hint == "quantity" {
		return l.equalsSum(key.v.expr, want)
	}
	return l.holds(key, true, pred{
		lit: func(v any) cel.Bool { return cel.Lit(scalar.Equal(v, want)) },
		value: func(x cel.Value, t *schema.Type) cel.Bool {
			return l.equalsLiteral(x, t, want)
		},
		sequence: func(s sequence) cel.Bool { return l.sequenceEquals(s, want) },
		json:     func(operand) cel.Bool { return cel.Lit(l.jsonEquals(want)) },
		neutral:  neutralsOf(value),
	})
}

// equalsSum is Equals of a quantity that arithmetic gives, which is a text to
// Kyverno and equals texts that are the same quantity.
func (l *lowering) equalsSum(x cel.Value, want any) cel.Bool {
	text, ok := want.(string)
	if _, isTime := scalar.Duration(text); ok && isTime && text != "0" {
		panic(l.unsupported("the comparison of a calculated quantity with a duration"))
	}
	if _, isQuantity := scalar.Quantity(text); !ok || !isQuantity {
		return cel.False()
	}
	return x.Call(cel.FuncCompareTo, cel.Func(cel.FuncQuantity, cel.String(text))).Eq(cel.Int(0))
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
		return l.equalsString(x, want)
	case schema.IntOrString:
		return l.perType(x, want)
	case schema.Any:
		return l.perType(x, want)
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
func (l *lowering) perType(x cel.Value, want any) cel.Bool {
	switch w := want.(type) {
	case bool:
		return x.Eq(cel.Lit(w).Value)
	case float64:
		number := l.equalsNumber(x, w)
		return cel.Or(number, cel.And(isString(x), l.equalsString(x, want)))
	case string:
		alts := []cel.Bool{}
		if !scalar.IsWild(w) && !scalar.IsNumeric(w) {
			alts = append(alts, x.Eq(cel.String(w)))
		} else {
			alts = append(alts, cel.And(isString(x), l.equalsString(x, want)))
		}
		if f, ok := scalar.EqualNumber(want); ok {
			alts = append(alts, l.equalsNumber(x, f))
		}
		return cel.Or(alts...)
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

// equalsString is Equals of a string key.
func (l *lowering) equalsString(x cel.Value, want any) cel.Bool {
	switch w := want.(type) {
	case float64:
		// a duration key equals a number of seconds; "0" is no duration here
		return cel.And(isDuration(x), cel.Not(isZeroText(x)),
			cel.Func(cel.FuncDuration, x).Eq(cel.Func(cel.FuncDuration, cel.String(scalar.Seconds(w)))))
	case string:
		return l.equalsText(x, w)
	}
	return cel.False()
}

// isZeroText is: a text that Go reads as the duration 0 and Kyverno as none.
func isZeroText(x cel.Value) cel.Bool { return x.Eq(cel.String("0")) }

// equalsText: durations compare as durations, then a key that is a quantity
// compares as one or not at all, then the value is a wildcard.
func (l *lowering) equalsText(x cel.Value, want string) cel.Bool {
	dur := scalar.IsNonzeroDuration(want)
	_, qty := scalar.Quantity(want)
	switch {
	case dur && qty: // "5m"
		byDuration := cel.And(isDuration(x), cel.Not(isZeroText(x)))
		return cel.Or(
			cel.And(byDuration, compareDuration(x, scalar.Equals, want)),
			cel.And(cel.Not(byDuration), isQuantity(x), compareQuantity(x, scalar.Equals, want)))
	case dur:
		return cel.And(isDuration(x), cel.Not(isZeroText(x)), compareDuration(x, scalar.Equals, want))
	case qty:
		return cel.And(isQuantity(x), compareQuantity(x, scalar.Equals, want))
	case scalar.IsWild(want): // a key that is a quantity matches no wildcard
		return cel.And(native.Matches(x, want), notQuantity(x, want))
	}
	return x.Eq(cel.String(want))
}

// notQuantity is: x, which matches the wildcard, is no quantity; literally true
// where the wildcard's own letters rule that out.
func notQuantity(x cel.Value, wildcard string) cel.Bool {
	for _, r := range wildcard {
		if r != '*' && r != '?' && !strings.ContainsRune("0123456789.+-eEnumkMGTPiKE", r) {
			return cel.True()
		}
	}
	return cel.Not(isQuantity(x))
}

// equalsVariable is Equals where the value is of the request too. Text of the
// request is no pattern.
func (l *lowering) equalsVariable(key, value operand) cel.Bool {
	if s, ok := l.sortedPair(key, value); ok {
		return s
	}
	if key.form == choiceForm {
		then, els := l.eitherWay(key.c,
			func() cel.Bool { return l.equalsVariable(*key.then, value) },
			func() cel.Bool { return l.equalsVariable(*key.els, value) })
		if then.IsFalse() && els.IsFalse() { // whoever asks for that reads the key and the value
			return then
		}
		return cel.CondBool(key.c, then, els)
	}
	if key.form == litForm && key.lit == nil {
		return cel.False()
	}
	l.mustBeOrdered(key)
	l.mustBeOrdered(value)
	k, keyThere, ok := l.unlessNull(key)
	v, valueThere, ok2 := l.unlessNull(value)
	if !ok || !ok2 {
		panic(l.unsupported("this comparison of two values"))
	}
	there := cel.And(keyThere, valueThere)
	kt, vt := kindFound(key), kindFound(value)
	switch {
	case kt == schema.String && vt == schema.String:
		return cel.And(there, l.equalTexts(key, k, v))
	case kt == vt && kt != schema.Any && kt != schema.IntOrString:
		return cel.And(there, k.Eq(v))
	case numericKind(key.typ()) && numericKind(value.typ()):
		return cel.And(there, k.Eq(v))
	}
	return cel.And(there, l.equalsAtRunTime(key, value, k, v))
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

// equalTexts is Equals of two texts of the request: durations compare as such, then
// a key that is a quantity compares as one or not at all, then the value is a
// wildcard. Names have no wildcards, and none reads as a duration alone.
func (l *lowering) equalTexts(key operand, k, v cel.Value) cel.Bool {
	l.note(diag.TextEquality, "a text of the request is compared with another one, which is a pattern where it has wildcards")
	k, v = l.once(variableName(k.LastField(), "key"), k), l.once(variableName(v.LastField(), "value"), v)
	timed, counted := writtenTime(key, k), isQuantity(k)
	if text, ok := key.lit.(string); ok {
		_, isQuantity := scalar.Quantity(text)
		counted = cel.Lit(isQuantity)
	}
	durations := cel.Func(cel.FuncDuration, k).Eq(cel.Func(cel.FuncDuration, v))
	quantities := cel.And(isQuantity(v), cel.Func(cel.FuncQuantity, k).Call(cel.FuncCompareTo, cel.Func(cel.FuncQuantity, v)).Eq(cel.Int(0)))
	return cel.CondBool(cel.And(timed, writtenTime(operand{}, v)), durations,
		cel.CondBool(counted, quantities, matchesPattern(k, patternOf(v))))
}

// writtenTime is: a text, whose expression is x, is a duration other than 0. Of a literal
// that is known, and the API server refuses duration() of one that is none.
func writtenTime(j operand, x cel.Value) cel.Bool {
	if text, ok := j.lit.(string); ok {
		return cel.Lit(scalar.IsNonzeroDuration(text))
	}
	return cel.And(isDuration(x), cel.Not(isZeroText(x)))
}

// sortedPair compares two sorted lists.
func (l *lowering) sortedPair(key, value operand) (cel.Bool, bool) {
	if key.form != sequenceForm || value.form != sequenceForm {
		return cel.Bool{}, false
	}
	a, ok := key.s.(sortedSequence)
	b, ok2 := value.s.(sortedSequence)
	if !ok || !ok2 {
		return cel.Bool{}, false
	}
	return l.sameElements(a.sequence, b.sequence), true
}

// isBool is: the boolean x of type t is b.
func isBool(x cel.Value, t *schema.Type, b bool) cel.Bool {
	if b {
		return isTrue(x, t)
	}
	return cel.Not(isTrue(x, t))
}
