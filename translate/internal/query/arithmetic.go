package query

import (
	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/jmespath"
	"github.com/kvap/kvap/schema"
	"github.com/kvap/kvap/translate/internal/read"
	"github.com/kvap/kvap/translate/internal/scalar"
)

// arithmetic lowers add, subtract, multiply and divide for the operands whose
// kind is known when compiling: numbers, and texts that are quantities.
func arithmetic(l *read.Lowering, f jmespath.Func, a, b read.Operand) read.Operand {
	x, xk, ofX := operand(l, a)
	y, yk, ofY := operand(l, b)
	d := ofX.And(ofY)
	switch {
	case f == jmespath.FuncDivide && xk == quantityOperand && yk == quantityOperand:
		divisor, _ := b.Lit.(string) // of the policy
		if q, known := scalar.Quantity(divisor); !known || q.IsZero() {
			d = d.And(read.Demand("", cel.Func(cel.FuncSign, y).Ne(cel.Int(0)))) // a zero divisor is an error to Kyverno, where CEL gives infinity
		}
		quotient := x.Call(cel.FuncAsApproximateFloat).Binary(cel.Over, y.Call(cel.FuncAsApproximateFloat))
		return read.ValueOf(read.Dyn(quotient), &schema.Type{Kind: schema.Number}).Demanding(d) // a double may be compared with an int only as dyn
	case xk == numberOperand && yk == numberOperand && f != jmespath.FuncDivide:
		op := map[jmespath.Func]cel.Operator{jmespath.FuncAdd: cel.Plus, jmespath.FuncSubtract: cel.Minus, jmespath.FuncMultiply: cel.Times}[f]
		return read.IntOf(x.Binary(op, y)).Demanding(d)
	}
	panic(l.Refuse(diag.NoFunction, "the function %s of these operands has no native form", f))
}

type operandKind int

const (
	noOperand operandKind = iota
	numberOperand
	quantityOperand
)

// operand is an operand, its kind, and what reading it demands. A text that may also be a duration, or
// neither, is an error in Kyverno or another kind of arithmetic; quantity() errs
// on all of those.
func operand(l *read.Lowering, j read.Operand) (cel.Value, operandKind, read.Demands) {
	if j.Form == read.LitForm {
		switch v := j.Lit.(type) {
		case float64:
			if v == float64(int64(v)) {
				return cel.Int(int64(v)), numberOperand, read.Demands{}
			}
		case string:
			if _, ok := scalar.Quantity(v); ok {
				return cel.Func(cel.FuncQuantity, cel.String(v)), quantityOperand, read.Demands{}
			}
		}
		return cel.Value{}, noOperand, read.Demands{}
	}
	v, d, ok := read.Strictly(l, j)
	switch k := read.KindOf(j.Typ()); {
	case ok && k == schema.Int && j.Form != read.ChoiceForm:
		return v, numberOperand, d
	case ok && k == schema.String:
		if !read.IsQuantityType(j.Typ()) { // what else it may be is an error in Kyverno, or a duration
			d = d.And(read.Demand("", read.IsQuantity(v)))
			d.Unsure = true
		}
		return cel.Func(cel.FuncQuantity, v), quantityOperand, d
	}
	return v, noOperand, d
}
