package translate

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
)

// literalText is a literal inside a longer text.
func literalText(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case float64:
		return numberText(v)
	case int64:
		return strconv.FormatInt(v, 10)
	}
	b, err := json.Marshal(v)
	if err != nil {
		return ""
	}
	return string(b)
}

// numberText is a number in decimal, integers without a fraction.
func numberText(f float64) string { return strconv.FormatFloat(f, 'f', -1, 64) }

func containsText(s, sub string) bool { return strings.Contains(s, sub) }

func changeCase(function, s string) string {
	if function == "to_upper" {
		return strings.ToUpper(s)
	}
	return strings.ToLower(s)
}

func parseNumber(v any) (float64, bool) {
	switch v := v.(type) {
	case float64:
		return v, true
	case string:
		f, err := strconv.ParseFloat(v, 64)
		return f, err == nil
	}
	return 0, false
}

func sortLiterals(list []any) []any {
	out := slices.Clone(list)
	slices.SortStableFunc(out, func(a, b any) int {
		if f, ok := floatOf(a); ok {
			if g, ok := floatOf(b); ok {
				return compareFloats(f, g)
			}
		}
		return strings.Compare(literalText(a), literalText(b))
	})
	return out
}
