package mutate

import (
	"slices"

	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/schema"
	"github.com/kvap/kvap/translate/internal/query"
	"github.com/kvap/kvap/translate/internal/read"
)

// exactly writes maps and lists as they stand, with those that are empty, for a place of a type.
func exactly(l *read.Lowering, n *policy.Node, t *schema.Type) cel.Value {
	switch n.Kind {
	case policy.Map:
		names, values := make([]string, len(n.Fields)), make([]cel.Value, len(n.Fields))
		for i, f := range n.Fields {
			names[i], values[i] = f.Key, exactly(l, f.Value, fieldType(l, t, f))
		}
		return mapLiteral(names, values)
	case policy.List:
		var items []cel.Value
		for _, item := range n.Items {
			items = append(items, exactly(l, item, elemOf(t)))
		}
		return cel.List(sameTyped(items)...)
	}
	return written(l, n, t, "")
}

func hasEmptyMaps(n *policy.Node) bool {
	return n.Kind == policy.Map && len(n.Fields) == 0 || slices.ContainsFunc(n.Items, hasEmptyMaps) ||
		slices.ContainsFunc(n.Fields, func(f policy.Field) bool { return hasEmptyMaps(f.Value) })
}

// Whole is a value as it stands, for what is made anew: of any type, with what is null, and in
// literals of mixed types, which Kyverno takes in a policy that generates.
func Whole(l *read.Lowering, n *policy.Node) cel.Value {
	l.SetPos(n.Pos)
	switch n.Kind {
	case policy.Map:
		entries := make([]cel.Entry, len(n.Fields))
		for i, f := range n.Fields {
			if query.HasVariables(&policy.Node{Kind: policy.String, Str: f.Key}) {
				l.SetPos(f.Pos)
				panic(l.Unsupported("a variable in a key of what is generated"))
			}
			entries[i] = cel.Entry{Key: cel.String(f.Key), Value: Whole(l, f.Value)}
		}
		return cel.Map(entries...)
	case policy.List:
		items := make([]cel.Value, len(n.Items))
		for i, item := range n.Items {
			items[i] = Whole(l, item)
		}
		return cel.List(items...)
	case policy.Null:
		return cel.Null()
	case policy.String:
		return wholeText(l, n)
	case policy.Float:
		if f, ok := n.Value().(float64); ok {
			return cel.Double(f)
		}
	}
	return constant(l, n.Value(), n, read.AnyType())
}

// wholeText is a text in which there may be variables. One that is a variable and nothing else is
// of the type of that, whatever it is.
func wholeText(l *read.Lowering, n *policy.Node) cel.Value {
	j := query.Template(l, query.ParseTemplate(n.Str, n.Pos))
	l.SetPos(n.Pos)
	if j.Form == read.PlaceForm && j.V.Kind() == schema.Any { // null stays null
		return j.V.Expr
	}
	v, ok := read.Expr(l, j)
	if !ok {
		panic(l.Unsupported("a variable that is not of the request"))
	}
	return v
}
