package translate

import (
	"slices"

	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/schema"
)

// kindFound is the kind of a value, where it is not null.
func kindFound(j operand) schema.Kind {
	switch j.lit.(type) {
	case []any:
		return schema.List
	case map[string]any:
		return schema.Map
	}
	return kindOf(j.typ())
}

// isOf is: a value of a kind, which may only be known at run time, is of a CEL type, of
// which the schema has the kinds.
func isOf(x cel.Value, kind schema.Kind, types func(cel.Value) cel.Bool, kinds ...schema.Kind) cel.Bool {
	if ofSeveralTypes(kind) {
		return types(x)
	}
	return cel.Lit(slices.Contains(kinds, kind))
}

func isText(x cel.Value, kind schema.Kind) cel.Bool { return isOf(x, kind, isString, schema.String) }

func isNumeric(x cel.Value, kind schema.Kind) cel.Bool {
	return isOf(x, kind, isNumber, schema.Int, schema.Number)
}

// equalsAtRunTime is Equals of two values of the request of which one is of unknown
// type, or which are of different types: what is the same is equal, but null, and a text
// equals more than itself.
func (l *lowering) equalsAtRunTime(key, value operand, k, v cel.Value) cel.Bool {
	kt, vt := kindFound(key), kindFound(value)
	null := cel.False()
	if kt == schema.Any && !l.knows(cel.Not(isNull(k))) {
		null = isNull(k)
	}
	if key.form != litForm {
		k = l.once(variableName(k.LastField(), "key"), k)
	}
	v = l.once(variableName(v.LastField(), "value"), v)
	if !null.IsFalse() {
		null = isNull(k)
	}
	textKey, text := isText(k, kt), isText(v, vt)
	same := cel.False()
	if kt == vt || ofSeveralTypes(kt) || ofSeveralTypes(vt) {
		same = k.Eq(v)
		if !ofSeveralTypes(kt) { // which the type checker would have the same on both sides
			same = dyn(k).Eq(v)
		}
		same = cel.And(cel.Not(null), same)
	}
	return cel.Or(same,
		both(textKey, text, func() cel.Bool { return l.equalTexts(key, k, v) }),
		both(textKey, isNumeric(v, vt), func() cel.Bool {
			return cel.And(writtenTime(key, k), cel.Func(cel.FuncDuration, k).Eq(wholeSeconds(v)))
		}),
		both(isNumeric(k, kt), text, func() cel.Bool {
			return cel.And(v.Matches(decimalText), cel.Func(cel.FuncDouble, v).Eq(k))
		}))
}

// ofSeveralTypes tells of a kind that stands for several types.
func ofSeveralTypes(k schema.Kind) bool { return k == schema.Any || k == schema.IntOrString }

// wholeSeconds is the duration of a number of seconds.
func wholeSeconds(v cel.Value) cel.Value {
	return cel.Func(cel.FuncDuration, cel.Func(cel.FuncString, cel.Func(cel.FuncInt, v)).Plus(cel.String("s")))
}
