package translate

import (
	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/jmespath"
	"github.com/kvap/kvap/schema"
	"github.com/kvap/kvap/translate/internal/scalar"
)

// arithmetic lowers add, subtract, multiply and divide for the operands whose
// kind is known when compiling: numbers, and texts that are quantities.
func (l *lowering) arithmetic(f jmespath.Func, a, b operand) operand {
	x, xk := l.operand(a)
	y, yk := l.operand(b)
	number := func(v cel.Value) operand { return valueOf(v, &schema.Type{Kind: schema.Number}) }
	switch {
	case f == jmespath.FuncDivide && xk == quantityOperand && yk == quantityOperand:
		// a zero divisor is an error to Kyverno, where CEL gives infinity
		l.need(cel.Func(cel.FuncSign, y).Ne(cel.Int(0)))
		quotient := x.Call(cel.FuncAsApproximateFloat).Binary(cel.Over, y.Call(cel.FuncAsApproximateFloat))
		return number(quotient)
	case xk == numberOperand && yk == numberOperand && f != jmespath.FuncDivide:
		op := map[jmespath.Func]cel.Operator{jmespath.FuncAdd: cel.Plus, jmespath.FuncSubtract: cel.Minus, jmespath.FuncMultiply: cel.Times}[f]
		return intOf(x.Binary(op, y))
	}
	panic(l.refuse(diag.NoFunction, "the function %s of these operands has no native form", f))
}

type operandKind int

const (
	noOperand operandKind = iota
	numberOperand
	quantityOperand
)

// operand is an operand and its kind. A text that may also be a duration, or
// neither, is an error in Kyverno or another kind of arithmetic; quantity() errs
// on all of those.
func (l *lowering) operand(j operand) (cel.Value, operandKind) {
	if j.form == litForm {
		switch v := j.lit.(type) {
		case float64:
			if v == float64(int64(v)) {
				return cel.Int(int64(v)), numberOperand
			}
		case string:
			if _, ok := scalar.Quantity(v); ok {
				return cel.Func(cel.FuncQuantity, cel.String(v)), quantityOperand
			}
		}
		return cel.Value{}, noOperand
	}
	if j.form == choiceForm {
		a, ok := l.expr(j)
		t := j.typ()
		if !ok || kindOf(t) != schema.String {
			return cel.Value{}, noOperand
		}
		l.needQuantity(a, t)
		return cel.Func(cel.FuncQuantity, a), quantityOperand
	}
	v, ok := l.expr(j)
	if !ok {
		return v, noOperand
	}
	switch {
	case kindOf(j.typ()) == schema.Int:
		return v, numberOperand
	case kindOf(j.typ()) == schema.String:
		l.needQuantity(v, j.typ())
		return cel.Func(cel.FuncQuantity, v), quantityOperand
	}
	return v, noOperand
}

// needQuantity needs a text to be a quantity. What else it may be is an error in Kyverno, or
// a duration.
func (l *lowering) needQuantity(v cel.Value, t *schema.Type) {
	if !isQuantityType(t) {
		l.need(isQuantity(v))
		l.needs.unsure = true
	}
}
