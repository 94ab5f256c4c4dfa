package datum

// MaxDepth is how many levels of lists and maps data may have. It is that of the
// JSON that comes from outside; what walks data relies on it.
const MaxDepth = 10_000

// TooDeep tells whether data have more levels than MaxDepth.
func TooDeep(v any) bool { return deeper(v, MaxDepth) }

func deeper(v any, levels int) bool {
	switch v := v.(type) {
	case []any:
		for _, item := range v {
			if levels == 0 || deeper(item, levels-1) {
				return true
			}
		}
	case map[string]any:
		for _, item := range v {
			if levels == 0 || deeper(item, levels-1) {
				return true
			}
		}
	}
	return false
}
