package datum

import (
	"maps"
	"reflect"
	"slices"
)

// Equal compares JSON values; numbers by their value (deviation 7).
func Equal(a, b any) bool {
	switch a := a.(type) {
	case int64, float64:
		switch b.(type) {
		case int64, float64:
			return Compare(a, b) == 0
		}
		return false
	case []any:
		b, ok := b.([]any)
		if !ok || len(a) != len(b) {
			return false
		}
		for i := range a {
			if !Equal(a[i], b[i]) {
				return false
			}
		}
		return true
	case map[string]any:
		b, ok := b.(map[string]any)
		if !ok || len(a) != len(b) {
			return false
		}
		for k, v := range a {
			w, ok := b[k]
			if !ok || !Equal(v, w) {
				return false
			}
		}
		return true
	}
	return reflect.DeepEqual(a, b)
}

// Keys lists the keys of a map, sorted.
func Keys[V any](m map[string]V) []string {
	return slices.Sorted(maps.Keys(m))
}
