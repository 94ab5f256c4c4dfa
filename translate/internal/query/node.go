package query

import (
	"slices"

	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/jmespath"
	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/translate/internal/read"
)

// Node lowers a value of the source whose strings may hold variables.
func Node(l *read.Lowering, n *policy.Node) read.Operand {
	if n == nil {
		return read.LitOf(nil)
	}
	l.SetPos(n.Pos)
	switch n.Kind {
	case policy.String:
		return Template(l, ParseTemplate(n.Str, n.Pos))
	case policy.Int:
		return read.LitOf(float64(n.Int))
	case policy.List, policy.Map:
		if !HasVariables(n) {
			return read.LitOf(floats(n.Value()))
		}
		if n.Kind == policy.List {
			var items []read.Operand
			for _, item := range n.Items {
				items = append(items, Node(l, item))
			}
			return read.SelectionOf(read.MultiForm, nil, items)
		}
		var keys []string
		var values []read.Operand
		for _, f := range n.Fields {
			keys = append(keys, f.Key)
			values = append(values, Node(l, f.Value))
		}
		return read.SelectionOf(read.HashForm, keys, values)
	}
	return read.LitOf(n.Value())
}

// HasVariables tells whether any string below n may hold a variable or reference.
func HasVariables(n *policy.Node) bool {
	if n.Kind == policy.String {
		t, d := jmespath.ParseTemplate(n.Str, n.Pos)
		if d != nil {
			return true
		}
		c, ok := t.Constant()
		return !ok || c != n.Str
	}
	return slices.ContainsFunc(n.Items, HasVariables) || slices.ContainsFunc(n.Fields, func(f policy.Field) bool {
		return HasVariables(f.Value) || HasVariables(&policy.Node{Kind: policy.String, Str: f.Key})
	})
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

// NodeOf is a value as a node of the source, at a position.
func NodeOf(v any, pos diag.Pos) *policy.Node {
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
			n.Items = append(n.Items, NodeOf(item, pos))
		}
	case map[string]any:
		n.Kind = policy.Map
		for _, k := range read.SortedKeys(v) {
			n.Fields = append(n.Fields, policy.Field{Key: k, Pos: pos, Value: NodeOf(v[k], pos)})
		}
	}
	return n
}
