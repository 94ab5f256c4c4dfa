package translate

import (
	"slices"

	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/jmespath"
	"github.com/kvap/kvap/schema"
)

// argument is j as an argument of a function. One that may be of a type that the function
// refuses is an error of CEL's own; where what must be there is asked for, it is one that
// can be told beforehand.
func (l *lowering) argument(function jmespath.Func, i int, j operand) operand {
	kinds := argumentKinds(function, i)
	if kinds == nil {
		return j
	}
	return l.inEach(j, func(j operand) operand { return l.ofKinds(j, kinds) })
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
func (l *lowering) ofKinds(j operand, kinds []schema.Kind) operand {
	switch {
	case j.form == litForm && !slices.ContainsFunc(kinds, func(k schema.Kind) bool { return isLiteralOf(j.lit, k) }):
		return typeError("argument")
	case j.form != placeForm || j.v.never:
		return j
	}
	v, c := j.v, j.v.found()
	if kind := v.kind(); kind == schema.Any || kind == schema.IntOrString {
		var alts []cel.Bool
		for _, k := range kinds {
			alts = append(alts, isOfKind(v.expr, k))
		}
		c = cel.And(c, cel.Or(alts...))
		if len(kinds) == 1 {
			v.typ = typeOfKind(kinds[0])
		}
	}
	l.need(c)
	return operandAt(v.settled())
}

// isOfKind is: a value of unknown type is of a kind.
func isOfKind(x cel.Value, k schema.Kind) cel.Bool {
	switch k {
	case schema.List:
		return isList(x)
	case schema.Map:
		return isMap(x)
	case schema.Number:
		return isNumber(x)
	}
	return isString(x)
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
		return mapOf(anyType())
	}
	return &schema.Type{Kind: k}
}
