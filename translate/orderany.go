package translate

import (
	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/schema"
	"github.com/kvap/kvap/translate/internal/scalar"
)

// orderVariable is the order of two values of the request, or of a literal and one. What the
// schema says are numbers, quantities or durations has an order. Of anything else there is
// none, which is an error, or it is only known at run time; nothing is ordered with null.
func (l *lowering) orderVariable(op scalar.Relation, key, value operand) cel.Bool {
	switch {
	case key.form == choiceForm:
		then, els := l.eitherWay(key.c,
			func() cel.Bool { return l.orderVariable(op, *key.then, value) },
			func() cel.Bool { return l.orderVariable(op, *key.els, value) })
		return cel.CondBool(key.c, then, els)
	case key.form == litForm && key.lit == nil:
		return cel.False()
	case key.form == litForm:
		return l.holds(value, true, pred{
			lit:      func(v any) cel.Bool { return cel.Lit(scalar.Ordered(op, key.lit, v)) },
			value:    func(x cel.Value, t *schema.Type) cel.Bool { return l.orderLiteral(op.Mirrored(), x, t, key.lit) },
			sequence: func(sequence) cel.Bool { return cel.False() },
		})
	case key.form != placeForm || value.form != placeForm:
		panic(l.noOrder(key, value))
	}
	k, keyThere, ok := l.unlessNull(key)
	v, valueThere, ok2 := l.unlessNull(value)
	if !ok || !ok2 {
		panic(l.noOrder(key, value))
	}
	there := cel.And(keyThere, valueThere)
	switch {
	case isQuantityType(key.typ()) && isQuantityType(value.typ()):
		return cel.And(there, orderQuantities(op, cel.Func(cel.FuncQuantity, k), cel.Func(cel.FuncQuantity, v)))
	case isDurationType(key.typ()) && isDurationType(value.typ()):
		return cel.And(there, cel.Func(cel.FuncDuration, k).Compare(cel.Operator(op), cel.Func(cel.FuncDuration, v)))
	case numericKind(key.typ()) && numericKind(value.typ()):
		return cel.And(there, k.Compare(cel.Operator(op), v))
	}
	panic(l.noOrder(key, value))
}

// noOrder refuses a comparison that the webhook has to judge: by what a text of the
// configuration is at the time, or as an error.
func (l *lowering) noOrder(key, value operand) refusal {
	if key.some(isConfigured) || value.some(isConfigured) {
		return l.unsupported("the order of a value and a text of the cluster's configuration, which may be a number, a quantity or a duration,")
	}
	return l.refuse(diag.NoExpression, "two values of the request have no order unless both are numbers, quantities or durations by the schema; "+
		"this comparison is an error (deviation 15; to_number() makes a number of a text), or its order is only known at run time")
}
