package scalar

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Text is a literal inside a longer text.
func Text(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case float64:
		return NumberText(v)
	case int64:
		return strconv.FormatInt(v, 10)
	}
	b, _ := json.Marshal(v)
	return string(b)
}

// NumberText is a number in decimal, integers without a fraction.
func NumberText(f float64) string { return strconv.FormatFloat(f, 'f', -1, 64) }

// Number is what a text reads as, as Go reads numbers; a number is itself.
func Number(v any) (float64, bool) {
	switch v := v.(type) {
	case float64:
		return v, true
	case string:
		f, err := strconv.ParseFloat(v, 64)
		return f, err == nil
	}
	return 0, false
}

// Sorted is a list in order: numbers by value, others by their text.
func Sorted(list []any) []any {
	out := slices.Clone(list)
	slices.SortStableFunc(out, func(a, b any) int {
		if f, ok := Float(a); ok {
			if g, ok := Float(b); ok {
				return CompareFloats(f, g)
			}
		}
		return strings.Compare(Text(a), Text(b))
	})
	return out
}

// Float is a literal as a number, where it is one.
func Float(v any) (float64, bool) {
	switch v := v.(type) {
	case float64:
		return v, true
	case int64:
		return float64(v), true
	}
	return 0, false
}

// CompareFloats is the sign of a - b.
func CompareFloats(a, b float64) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

// Same tells that two literals are equal as JMESPath compares: by type and value.
func Same(a, b any) bool {
	if f, ok := Float(a); ok {
		g, ok := Float(b)
		return ok && f == g
	}
	switch x := a.(type) {
	case []any:
		y, ok := b.([]any)
		return ok && slices.EqualFunc(x, y, Same)
	case map[string]any:
		y, ok := b.(map[string]any)
		return ok && maps.EqualFunc(x, y, Same)
	}
	return a == b
}
