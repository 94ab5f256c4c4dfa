package compare

import (
	"github.com/kvap/kvap/schema"
	"github.com/kvap/kvap/translate/internal/read"
)

// kindFound is the kind of a value, where it is not null.
func kindFound(j read.Operand) schema.Kind {
	switch j.Lit.(type) {
	case []any:
		return schema.List
	case map[string]any:
		return schema.Map
	}
	return read.KindOf(j.Typ())
}

// ofSeveralTypes tells of a kind that stands for several types.
func ofSeveralTypes(k schema.Kind) bool { return k == schema.Any || k == schema.IntOrString }
