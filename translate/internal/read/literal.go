package read

import (
	"strings"

	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/jmespath"
	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/schema"
	"github.com/kvap/kvap/translate/internal/scalar"
)

// ContainsText is what CEL calls contains, of texts that are known.
func ContainsText(s, sub string) bool { return strings.Contains(s, sub) }

// ChangeCase is to_upper or to_lower of a text that is known.
func ChangeCase(f jmespath.Func, s string) string {
	if f == jmespath.FuncToUpper {
		return strings.ToUpper(s)
	}
	return strings.ToLower(s)
}

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
		if v == float64(int64(v)) {
			return cel.Int(int64(v)), true
		}
		return cel.Double(v), true
	}
	return Literal(v), true
}

// homogeneous wraps literals of mixed types in dyn, which CEL's lists want.
func homogeneous(vs []any, out []cel.Value) []cel.Value {
	same := true
	kind := func(v any) schema.Kind {
		if f, ok := v.(float64); ok && f == float64(int64(f)) {
			return schema.Int // as which it is written
		}
		return LitOf(v).Typ().Kind
	}
	for i := 1; i < len(vs); i++ {
		same = same && kind(vs[i]) == kind(vs[0]) && kind(vs[i]) != schema.Any
	}
	if same {
		return out
	}
	for i := range out {
		out[i] = Dyn(out[i])
	}
	return out
}

// Candidates are literals of the value's type: its zero first.
func Candidates(t *schema.Type, p *policy.Node) []any {
	if t == nil {
		return nil
	}
	switch t.Kind {
	case schema.Bool:
		return []any{false, true}
	case schema.Int, schema.IntOrString, schema.Number:
		return []any{int64(0), int64(1)}
	case schema.String:
		if t.Format == schema.Quantity {
			return []any{"0"}
		}
		out := []any{""}
		if p.Kind == policy.String {
			for _, alt := range scalar.ParsePattern(p.Str) {
				for _, t := range alt {
					for _, a := range t.Atoms {
						if !scalar.IsWild(a.Operand) {
							out = append(out, a.Operand)
						}
					}
				}
			}
		}
		return out
	}
	return nil
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
