package read

import (
	"slices"

	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/schema"
)

// LiteralTree is a literal of the policy as a CEL literal.
func LiteralTree(l *Lowering, v any) (cel.Value, bool) {
	switch v := v.(type) {
	case []any:
		out := make([]cel.Value, len(v))
		for i, item := range v {
			x, ok := LiteralTree(l, item)
			if !ok {
				return x, false
			}
			out[i] = x
		}
		return cel.List(homogeneous(v, out)...), true
	case map[string]any:
		var out []cel.Entry
		for _, k := range SortedKeys(v) {
			x, ok := LiteralTree(l, v[k])
			if !ok {
				return x, false
			}
			out = append(out, cel.Entry{Key: cel.String(k), Value: Dyn(x)})
		}
		return cel.Map(out...), true
	case float64:
		return NumberOf(v), true
	}
	return Literal(v), true
}

// NumberOf is a number as a CEL literal, an integer where it is one.
func NumberOf(f float64) cel.Value {
	if f == float64(int64(f)) {
		return cel.Int(int64(f))
	}
	return cel.Double(f)
}

// NumberFor is a number as a literal to compare a value of a type with: of a number, to the
// type checker, it is a double.
func NumberFor(t *schema.Type, f float64) cel.Value {
	if KindOf(t) == schema.Number {
		return cel.Double(f)
	}
	return NumberOf(f)
}

// homogeneous wraps literals of mixed types in dyn, which CEL's lists want.
func homogeneous(vs []any, out []cel.Value) []cel.Value {
	kind := func(v any) schema.Kind {
		if f, ok := v.(float64); ok && f == float64(int64(f)) {
			return schema.Int // as which it is written
		}
		return LitOf(v).Typ().Kind
	}
	mixed := func(v any) bool { return kind(v) != kind(vs[0]) || kind(v) == schema.Any }
	if len(vs) > 1 && slices.ContainsFunc(vs, mixed) {
		for i := range out {
			out[i] = Dyn(out[i])
		}
	}
	return out
}

// Literal is a value of the policy as an expression.
func Literal(v any) cel.Value {
	switch v := v.(type) {
	case bool:
		return cel.Lit(v).Value
	case int64:
		return cel.Int(v)
	case float64:
		return cel.Double(v)
	case string:
		return cel.String(v)
	}
	return cel.Null()
}
