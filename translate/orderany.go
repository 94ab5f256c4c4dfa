package translate

import (
	"github.com/blang/semver/v4"

	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/schema"
	"github.com/kvap/kvap/translate/internal/scalar"
)

// orderVariable is the order of two values of the request, by the types that they have,
// which may only be known at run time. Only numbers and texts have an order.
func (l *lowering) orderVariable(op scalar.Relation, key, value operand) cel.Bool {
	if key.form == choiceForm {
		then, els := l.eitherWay(key.c,
			func() cel.Bool { return l.orderVariable(op, *key.then, value) },
			func() cel.Bool { return l.orderVariable(op, *key.els, value) })
		return unlessSame(key.c, then, els)
	}
	if key.form == litForm && key.lit == nil || key.form == multiForm || value.form == multiForm {
		return cel.False()
	}
	k, keyThere, ok := l.unlessNull(key)
	v, valueThere, ok2 := l.unlessNull(value)
	if !ok || !ok2 {
		panic(l.unsupported("the order of two values of the request"))
	}
	there := cel.And(keyThere, valueThere)
	if numericKind(key.typ()) && numericKind(value.typ()) {
		return cel.And(there, k.Compare(cel.Operator(op), v))
	}
	return cel.And(there, l.orderAtRunTime(op, key, value, k, v))
}

func (l *lowering) orderAtRunTime(op scalar.Relation, key, value operand, k, v cel.Value) cel.Bool {
	kt, vt := kindFound(key), kindFound(value)
	if key.form != litForm {
		k = l.once(variableName(k.LastField(), "key"), k)
	}
	v = l.once(variableName(v.LastField(), "value"), v)
	return cel.Or(
		both(isNumeric(k, kt), isNumeric(v, vt), func() cel.Bool { return k.Compare(cel.Operator(op), v) }),
		both(isNumeric(k, kt), isText(v, vt), func() cel.Bool { return orderNumberText(op, key, k, v) }),
		both(isText(k, kt), isNumeric(v, vt), func() cel.Bool {
			return cel.CondBool(writtenTime(key, k), ordered(op, cel.Func(cel.FuncDuration, k), secondsOf(value, v)),
				cel.And(isDecimal(key, k), ordered(op, cel.Func(cel.FuncDouble, k), v)))
		}),
		both(isText(k, kt), isText(v, vt), func() cel.Bool { return l.orderTexts(op, key, value, k, v) }))
}

// both is: two conditions hold, and what then is built, which is not where they cannot.
func both(a, b cel.Bool, then func() cel.Bool) cel.Bool {
	c := cel.And(a, b)
	if c.IsFalse() {
		return c
	}
	return cel.And(c, then())
}

func ordered(op scalar.Relation, a, b cel.Value) cel.Bool { return a.Compare(cel.Operator(op), b) }

// orderNumberText is the order of a number and a text, which may be a duration.
func orderNumberText(op scalar.Relation, key operand, k, v cel.Value) cel.Bool {
	return cel.CondBool(writtenTime(operand{}, v), ordered(op, secondsOf(key, k), cel.Func(cel.FuncDuration, v)),
		cel.And(v.Matches(decimalText), ordered(op, k, cel.Func(cel.FuncDouble, v))))
}

// orderTexts tries two texts as durations, quantities, numbers and versions, in this
// order.
func (l *lowering) orderTexts(op scalar.Relation, key, value operand, k, v cel.Value) cel.Bool {
	quantities := orderQuantities(op, cel.Func(cel.FuncQuantity, k), cel.Func(cel.FuncQuantity, v))
	if isQuantityField(key) && isQuantityField(value) { // of which those that are durations too have one unit
		return quantities
	}
	counted, versioned := isQuantity(k), cel.Func(cel.FuncIsSemver, k).AsBool()
	if text, ok := key.lit.(string); ok {
		_, isQuantity := scalar.Quantity(text)
		_, err := semver.Parse(text)
		counted, versioned = cel.Lit(isQuantity), cel.Lit(err == nil)
	}
	versions := cel.False()
	if !versioned.IsFalse() {
		if !l.release.Has("semver") {
			panic(l.refuse(diag.NeedsNewer, "comparing versions needs Kubernetes 1.34"))
		}
		versions = cel.And(versioned, cel.Func(cel.FuncIsSemver, v).AsBool(),
			cel.Func(cel.FuncSemver, k).Call(cel.FuncCompareTo, cel.Func(cel.FuncSemver, v)).Compare(cel.Operator(op), cel.Int(0)))
	}
	var number cel.Bool
	if decimal := isDecimal(key, k); !decimal.IsFalse() {
		x := cel.Func(cel.FuncDouble, k)
		number = orderNumberText(op, operand{}, x, v)
		versions = cel.CondBool(decimal, number, versions)
	}
	return cel.CondBool(cel.And(writtenTime(key, k), writtenTime(operand{}, v)),
		ordered(op, cel.Func(cel.FuncDuration, k), cel.Func(cel.FuncDuration, v)),
		cel.CondBool(cel.And(counted, isQuantity(v)), quantities, versions))
}

// isQuantityField tells of a place whose text is a quantity in every object.
func isQuantityField(j operand) bool {
	return j.form == placeForm && j.v.kind() == schema.String && j.v.typ.Format == schema.Quantity
}

// isDecimal is: a text, whose expression is x, is a number.
func isDecimal(j operand, x cel.Value) cel.Bool {
	if text, ok := j.lit.(string); ok {
		_, isNumber := scalar.Number(text)
		return cel.Lit(isNumber)
	}
	return x.Matches(decimalText)
}

// secondsOf is the duration of a number of seconds.
func secondsOf(j operand, x cel.Value) cel.Value {
	if f, ok := j.lit.(float64); ok {
		return cel.Func(cel.FuncDuration, cel.String(scalar.Seconds(f)))
	}
	return wholeSeconds(x)
}
