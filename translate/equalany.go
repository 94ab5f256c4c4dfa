package translate

import (
	"slices"

	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/schema"
)

// kindFound is the kind of a value, where it is not null.
func kindFound(j operand) schema.Kind {
	switch j.lit.(type) {
	case []any:
		return schema.List
	case map[string]any:
		return schema.Map
	}
	return kindOf(j.typ())
}

// isOf is: a value of a kind, which may only be known at run time, is of a CEL type, of
// which the schema has the kinds.
func isOf(x cel.Value, kind schema.Kind, types func(cel.Value) cel.Bool, kinds ...schema.Kind) cel.Bool {
	if ofSeveralTypes(kind) {
		return types(x)
	}
	return cel.Lit(slices.Contains(kinds, kind))
}

func isNumeric(x cel.Value, kind schema.Kind) cel.Bool {
	return isOf(x, kind, isNumber, schema.Int, schema.Number)
}

// ofSeveralTypes tells of a kind that stands for several types.
func ofSeveralTypes(k schema.Kind) bool { return k == schema.Any || k == schema.IntOrString }
