package translate

import (
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

// ofSeveralTypes tells of a kind that stands for several types.
func ofSeveralTypes(k schema.Kind) bool { return k == schema.Any || k == schema.IntOrString }
