package translate

import (
	"strings"

	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/jmespath"
	"github.com/kvap/kvap/schema"
)

func containsText(s, sub string) bool { return strings.Contains(s, sub) }

func changeCase(f jmespath.Func, s string) string {
	if f == jmespath.FuncToUpper {
		return strings.ToUpper(s)
	}
	return strings.ToLower(s)
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
