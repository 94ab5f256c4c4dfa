package compare

import (
	"github.com/kvap/kvap/schema"
	"github.com/kvap/kvap/translate/internal/read"
	"github.com/kvap/kvap/translate/internal/scalar"
)

// NeutralsOf are literals near a value, candidates to stand in for a missing key.
func NeutralsOf(value read.Operand) func(*schema.Type) []any {
	if value.Form != read.LitForm {
		return nil
	}
	return func(t *schema.Type) []any {
		var out []any
		add := func(v any) {
			switch v := v.(type) {
			case string:
				if read.KindOf(t) == schema.String && !scalar.IsWild(v) {
					out = append(out, v)
				}
			case float64:
				if read.KindOf(t) == schema.Int && v == float64(int64(v)) {
					out = append(out, int64(v), int64(v)+1)
				}
			}
		}
		add(value.Lit)
		if list, ok := value.Lit.([]any); ok {
			for _, v := range list {
				add(v)
			}
		}
		return out
	}
}
