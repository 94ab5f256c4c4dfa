package compare

import (
	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/schema"
	"github.com/kvap/kvap/translate/internal/read"
	"github.com/kvap/kvap/translate/internal/scalar"
)

// orderVariable is the order of two values of the request, or of a literal and one. What the
// schema says are numbers, quantities or durations has an order. Of anything else there is
// none, which is an error, or it is only known at run time; nothing is ordered with null.
func orderVariable(l *read.Lowering, op scalar.Relation, key, value read.Operand) cel.Bool {
	switch {
	case key.Form == read.ChoiceForm:
		then, els := read.EitherWay(l, key.C,
			func() cel.Bool { return orderVariable(l, op, *key.Then, value) },
			func() cel.Bool { return orderVariable(l, op, *key.Els, value) })
		return cel.CondBool(key.C, then, els)
	case key.Form == read.LitForm && key.Lit == nil:
		return cel.False()
	case key.Form == read.LitForm && !hasNoOrder(key.Lit):
		return read.Holds(l, value, true, read.Pred{
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
