package read

import (
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/jmespath"
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

// Argument is j as an argument of a function. One that may be of a type that the function
// refuses is an error of CEL's own; where what must be there is asked for, it is one that
// can be told beforehand.
func Argument(function jmespath.Func, i int, j Operand) Operand {
	kinds := argumentKinds(function, i)
	if kinds == nil {
		return j
	}
	return InEach(j, func(j Operand) Operand { return ofKinds(j, kinds) })
}

// argumentKinds are what a function takes in a place, for those that have a native
// form for values of unknown type.
func argumentKinds(function jmespath.Func, i int) []schema.Kind {
	text, number := []schema.Kind{schema.String}, schema.Number
	switch function {
	case jmespath.FuncLength:
		return []schema.Kind{schema.String, schema.List, schema.Map}
	case jmespath.FuncContains:
		if i == 1 { // whatever is looked for
			return nil
		}
		return []schema.Kind{schema.String, schema.List}
	case jmespath.FuncKeys, jmespath.FuncValues:
		return []schema.Kind{schema.Map}
	case jmespath.FuncStartsWith, jmespath.FuncEndsWith, jmespath.FuncToUpper, jmespath.FuncToLower, jmespath.FuncSplit, jmespath.FuncRegexReplaceAll:
		return text
	case jmespath.FuncRegexMatch:
		if i == 0 {
			return text
		}
		return append(text, number)
	}
	return nil
}

// ofKinds is j where it is of one of the kinds, and an error elsewhere.
func ofKinds(j Operand, kinds []schema.Kind) Operand {
	switch {
	case j.Form == LitForm && !slices.ContainsFunc(kinds, func(k schema.Kind) bool { return isLiteralOf(j.Lit, k) }):
		return TypeError("argument")
	case j.Form != PlaceForm || j.V.Never:
		return j
	}
	v, c := j.V, j.V.Found()
	if kind := v.Kind(); kind == schema.Any || kind == schema.IntOrString {
		var alts []cel.Bool
		for _, k := range kinds {
			alts = append(alts, isOfKind(v.Expr, k))
		}
		c = cel.And(c, cel.Or(alts...))
		if len(kinds) == 1 {
			v.Typ = typeOfKind(kinds[0])
		}
	}
	return OperandAt(v.Settled()).Demanding(Demand("", c))
}

// isOfKind is: a value of unknown type is of a kind.
func isOfKind(x cel.Value, k schema.Kind) cel.Bool {
	switch k {
	case schema.List:
		return IsList(x)
	case schema.Map:
		return IsMap(x)
	case schema.Number:
		return IsNumber(x)
	}
	return IsString(x)
}

// isLiteralOf tells that a literal is of a kind.
func isLiteralOf(v any, k schema.Kind) bool {
	switch v.(type) {
	case string:
		return k == schema.String
	case float64, int64:
		return k == schema.Number
	case []any:
		return k == schema.List
	case map[string]any:
		return k == schema.Map
	}
	return false
}

func typeOfKind(k schema.Kind) *schema.Type {
	if k == schema.Map {
		return MapOf(AnyType())
	}
	return &schema.Type{Kind: k}
}

// A leaf of a pattern that is one variable is only known at run time. A value satisfies it by
// being the same. Wildcards that the policy writes around a variable are wildcards.

// A RuntimeText is what a leaf stands for: a text of a type or, where there is a wildcard in
// front of it or behind, which texts match.
type RuntimeText struct {
	Text  cel.Value
	Typ   *schema.Type
	Match func(cel.Value) cel.Bool
	Alone bool // there are no words around the variable, so that no number has the text
}

// IsSame is: a text that is there is the one that the leaf stands for.
func (t RuntimeText) IsSame(v Place) cel.Bool {
	switch {
	case t.Match != nil:
		return t.Match(v.Expr)
	case IsQuantityType(t.Typ) && IsQuantityType(v.Typ):
		return cel.Func(cel.FuncQuantity, v.Expr).Call(cel.FuncCompareTo, cel.Func(cel.FuncQuantity, t.Text)).Eq(cel.Int(0))
	case IsDurationType(t.Typ) && IsDurationType(v.Typ):
		return cel.Func(cel.FuncDuration, v.Expr).Eq(cel.Func(cel.FuncDuration, t.Text))
	}
	return v.Expr.Eq(t.Text)
}
