package read

import (
	"slices"

	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/jmespath"
	"github.com/kvap/kvap/schema"
)

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
