package translate

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/schema"
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

func floatOf(v any) (float64, bool) {
	switch v := v.(type) {
	case float64:
		return v, true
	case int64:
		return float64(v), true
	}
	return 0, false
}

func compareFloats(a, b float64) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

func sameLiteral(a, b any) bool {
	if f, ok := floatOf(a); ok {
		g, ok := floatOf(b)
		return ok && f == g
	}
	switch x := a.(type) {
	case []any:
		y, ok := b.([]any)
		if !ok || len(x) != len(y) {
			return false
		}
		for i := range x {
			if !sameLiteral(x[i], y[i]) {
				return false
			}
		}
		return true
	case map[string]any:
		y, ok := b.(map[string]any)
		if !ok || len(x) != len(y) {
			return false
		}
		for k := range x {
			if v, ok := y[k]; !ok || !sameLiteral(x[k], v) {
				return false
			}
		}
		return true
	}
	switch b.(type) {
	case []any, map[string]any:
		return false
	}
	return a == b
}

// literalTree is a literal of the policy as a CEL literal.
func (l *lowering) literalTree(v any) (cel.Value, bool) {
	switch v := v.(type) {
	case []any:
		out := make([]cel.Value, len(v))
		for i, item := range v {
			x, ok := l.literalTree(item)
			if !ok {
				return x, false
			}
			out[i] = x
		}
		return cel.List(homogeneous(v, out)...), true
	case map[string]any:
		var out []cel.Entry
		for _, k := range sortedKeys(v) {
			x, ok := l.literalTree(v[k])
			if !ok {
				return x, false
			}
			out = append(out, cel.Entry{Key: cel.String(k), Value: dyn(x)})
		}
		return cel.Map(out...), true
	case float64:
		if v == float64(int64(v)) {
			return cel.Int(int64(v)), true
		}
		return cel.Double(v), true
	}
	return literal(v), true
}

// homogeneous wraps literals of mixed types in dyn, which CEL's lists want.
func homogeneous(vs []any, out []cel.Value) []cel.Value {
	same := true
	kind := func(v any) schema.Kind {
		if f, ok := v.(float64); ok && f == float64(int64(f)) {
			return schema.Int // as which it is written
		}
		return litOf(v).typ().Kind
	}
	for i := 1; i < len(vs); i++ {
		same = same && kind(vs[i]) == kind(vs[0]) && kind(vs[i]) != schema.Any
	}
	if same {
		return out
	}
	for i := range out {
		out[i] = dyn(out[i])
	}
	return out
}
