package read

import (
	"strconv"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/schema"
	"github.com/kvap/kvap/translate/internal/scalar"
)

// DecimalText matches the decimal numbers that Go's ParseFloat takes.
const DecimalText = `^[+-]?([0-9]+([.][0-9]*)?|[.][0-9]+)([eE][+-]?[0-9]+)?$`

// durationText matches what Go's ParseDuration takes.
const durationText = `^[+-]?(0|(([0-9]+([.][0-9]*)?|[.][0-9]+)(ns|us|µs|μs|ms|s|m|h))+)$`

// IntegerText matches the texts that Go's ParseInt reads as n.
func IntegerText(n int64) string {
	switch {
	case n == 0:
		return `^[+-]?0+$`
	case n < 0:
		return `^-0*` + strconv.FormatInt(n, 10)[1:] + `$`
	}
	return `^[+]?0*` + strconv.FormatInt(n, 10) + `$`
}

// IsDuration is: the text v reads as a duration.
func IsDuration(v cel.Value) cel.Bool { return v.Matches(durationText) }

// IsQuantity is: the text v reads as a quantity.
func IsQuantity(v cel.Value) cel.Bool { return cel.Func(cel.FuncIsQuantity, v).AsBool() }

// Measured is: the text x of a type is in a relation to a literal that is a quantity or a
// duration, which it is read as; false of what cannot be.
func Measured(x cel.Value, t *schema.Type, op scalar.Relation, literal string) cel.Bool {
	switch ReadsOf(literal, t) {
	case scalar.AsQuantity:
		if IsQuantityType(t) {
			return compareQuantity(x, op, literal)
		}
		return cel.And(IsQuantity(x), compareQuantity(x, op, literal))
	case scalar.AsDuration:
		return cel.And(IsDuration(x), CompareDuration(x, op, literal))
	}
	return cel.False()
}

// ReadsOf is what a literal has the texts of a type read as. The text of an int-or-string
// is no number.
func ReadsOf(literal string, t *schema.Type) scalar.Reads {
	if KindOf(t) == schema.IntOrString {
		return scalar.AsText
	}
	return scalar.ReadsOf(literal, KindOf(t) == schema.String && t.Format == schema.Duration)
}

// IsQuantityType tells of texts that are quantities in every object.
func IsQuantityType(t *schema.Type) bool {
	return KindOf(t) == schema.String && t.Format == schema.Quantity
}

// IsDurationType tells that the schema says a text to be a duration.
func IsDurationType(t *schema.Type) bool {
	return KindOf(t) == schema.String && t.Format == schema.Duration
}

// CompareDuration is: the duration v is in a relation to one of the policy.
func CompareDuration(v cel.Value, op scalar.Relation, operand string) cel.Bool {
	return cel.Func(cel.FuncDuration, v).Compare(cel.Operator(op), cel.Func(cel.FuncDuration, cel.String(operand)))
}

func compareQuantity(v cel.Value, op scalar.Relation, operand string) cel.Bool {
	return OrderQuantities(op, cel.Func(cel.FuncQuantity, v), cel.Func(cel.FuncQuantity, cel.String(operand)))
}

// OrderQuantities is q op w.
func OrderQuantities(op scalar.Relation, q, w cel.Value) cel.Bool {
	switch op {
	case scalar.Greater:
		return q.Call(cel.FuncIsGreaterThan, w).AsBool()
	case scalar.Less:
		return q.Call(cel.FuncIsLessThan, w).AsBool()
	}
	return q.Call(cel.FuncCompareTo, w).Compare(cel.Operator(op), cel.Int(0))
}

// CompareInt is v op q for an integer v, without fractions in the expression.
func CompareInt(v cel.Value, op scalar.Relation, q resource.Quantity) cel.Bool {
	floor, exact := scalar.Floor(q)
	switch {
	case exact:
		return v.Compare(cel.Operator(op), cel.Int(floor))
	case op == scalar.Equals || op == scalar.Differs:
		return cel.Lit(op == scalar.Differs)
	case op == scalar.Less || op == scalar.LessEqual:
		return v.Compare(cel.LessEqual, cel.Int(floor))
	}
	return v.Compare(cel.Greater, cel.Int(floor))
}

// CompareNumber is v op q for a number of either type. Kyverno rounds a double
// to six decimals first; a value that differs from the bound by less than that is
// not told apart from it there.
func CompareNumber(v cel.Value, t *schema.Type, op scalar.Relation, q resource.Quantity) cel.Bool {
	if floor, exact := scalar.Floor(q); exact && KindOf(t) != schema.Number {
		return v.Compare(cel.Operator(op), cel.Int(floor))
	}
	return v.Compare(cel.Operator(op), cel.Double(q.AsApproximateFloat64()))
}
