package translate

import (
	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/schema"
	"github.com/kvap/kvap/translate/internal/scalar"
)

// orderVariable is the order of two values of the request, or of a literal and one. Numbers
// have an order, and what the schema says are quantities or durations. Of anything else
// there is none, which is an error; nothing is ordered with null.
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
	kt, vt := kindOf(key.typ()), kindOf(value.typ())
	mayBeNumber := func(t *schema.Type) bool { return numericKind(t) || ofSeveralTypes(kindOf(t)) }
	switch {
	case isQuantityType(key.typ()) && isQuantityType(value.typ()):
		return cel.And(there, orderQuantities(op, cel.Func(cel.FuncQuantity, k), cel.Func(cel.FuncQuantity, v)))
	case isDurationType(key.typ()) && isDurationType(value.typ()):
		return cel.And(there, cel.Func(cel.FuncDuration, k).Compare(cel.Operator(op), cel.Func(cel.FuncDuration, v)))
	case !mayBeNumber(key.typ()) || !mayBeNumber(value.typ()):
		panic(l.noOrder(key, value))
	}
	for _, x := range []struct {
		kind schema.Kind
		v    cel.Value
	}{{kt, k}, {vt, v}} {
		if x.kind == schema.Any {
			there = cel.And(there, cel.Not(isNull(x.v)))
		}
	}
	l.noteSame(key, value)
	numbers := cel.And(isNumeric(k, kt), isNumeric(v, vt))
	if numbers.IsTrue() {
		return cel.And(there, k.Compare(cel.Operator(op), v))
	}
	l.need(cel.Implies(there, numbers))
	return cel.And(there, k.Compare(cel.Operator(op), v))
}

// noOrder refuses a comparison that the webhook has to judge: by what a text of the
// configuration is at the time, or as an error.
func (l *lowering) noOrder(key, value operand) refusal {
	if key.some(isConfigured) || value.some(isConfigured) {
		return l.unsupported("the order of a value and a text of the cluster's configuration, which may be a number, a quantity or a duration,")
	}
	return l.refuse(diag.NoExpression, "two values of the request have no order unless both are numbers, or quantities or durations by the schema; "+
		"this comparison is an error (deviation 15; to_number() makes a number of a text)")
}
