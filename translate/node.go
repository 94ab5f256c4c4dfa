package translate

import (
	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/jmespath"
	"github.com/kvap/kvap/policy"
)

// node lowers a value of the source whose strings may hold variables.
func (l *lowering) node(n *policy.Node) operand {
	if n == nil {
		return litOf(nil)
	}
	l.setPos(n.Pos)
	switch n.Kind {
	case policy.String:
		return l.template(l.parseTemplate(n.Str, n.Pos))
	case policy.Int:
		return litOf(float64(n.Int))
	case policy.List:
		return l.listNode(n)
	case policy.Map:
		if !hasVariables(n) {
			return litOf(floats(n.Value()))
		}
		var keys []string
		var values []operand
		for _, f := range n.Fields {
			keys = append(keys, f.Key)
			values = append(values, l.node(f.Value))
		}
		return selectionOf(hashForm, keys, values)
	}
	return litOf(n.Value())
}

func (l *lowering) listNode(n *policy.Node) operand {
	if !hasVariables(n) {
		return litOf(floats(n.Value()))
	}
	var items []operand
	for _, item := range n.Items {
		items = append(items, l.node(item))
	}
	return selectionOf(multiForm, nil, items)
}

// hasVariables tells whether any string below n may hold a variable or reference.
func hasVariables(n *policy.Node) bool {
	if n.Kind == policy.String {
		t, d := jmespath.ParseTemplate(n.Str, n.Pos)
		if d != nil {
			return true
		}
		c, ok := t.Constant()
		return !ok || c != n.Str
	}
	for _, item := range n.Items {
		if hasVariables(item) {
			return true
		}
	}
	for _, f := range n.Fields {
		if hasVariables(f.Value) || hasVariables(&policy.Node{Kind: policy.String, Str: f.Key}) {
			return true
		}
	}
	return false
}

// floats makes the numbers of a literal float64, the one number type.
func floats(v any) any {
	switch v := v.(type) {
	case int64:
		return float64(v)
	case []any:
		for i := range v {
			v[i] = floats(v[i])
		}
	case map[string]any:
		for k := range v {
			v[k] = floats(v[k])
		}
	}
	return v
}

func nodeOf(v any, pos diag.Pos) *policy.Node {
	n := &policy.Node{Pos: pos}
	switch v := v.(type) {
	case bool:
		n.Kind, n.Bool = policy.Bool, v
	case float64:
		n.Kind, n.Float = policy.Float, v
		if v == float64(int64(v)) {
			n.Kind, n.Int = policy.Int, int64(v)
		}
	case string:
		n.Kind, n.Str = policy.String, v
	case []any:
		n.Kind = policy.List
		for _, item := range v {
			n.Items = append(n.Items, nodeOf(item, pos))
		}
	case map[string]any:
		n.Kind = policy.Map
		for _, k := range sortedKeys(v) {
			n.Fields = append(n.Fields, policy.Field{Key: k, Pos: pos, Value: nodeOf(v[k], pos)})
		}
	}
	return n
}
