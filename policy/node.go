package policy

import "github.com/kvap/kvap/diag"

// A NodeKind is the JSON type of a Node.
type NodeKind int

// The kinds. Integers and other numbers are told apart as the Kubernetes JSON
// decoder does: 5 is an Int, 5.0 and 1e3 are Floats.
const (
	Null NodeKind = iota
	Bool
	Int
	Float
	String
	List
	Map
)

// String is the English word for the kind.
func (k NodeKind) String() string {
	return [...]string{"null", "bool", "integer", "number", "string", "list", "map"}[k]
}

// A Node is a value of the source as written, with its place: what a pattern, a
// condition's key or a mutation is made of. Aliases are expanded and merge keys
// applied.
type Node struct {
	Kind   NodeKind
	Pos    diag.Pos
	Bool   bool
	Int    int64
	Float  float64
	Str    string
	Items  []*Node // of a List
	Fields []Field // of a Map, in source order
}

// A Field is one entry of a map.
type Field struct {
	Key   string
	Pos   diag.Pos // of the key
	Value *Node
}

// Get is the value of a map's key, or nil.
func (n *Node) Get(key string) *Node {
	if n == nil || n.Kind != Map {
		return nil
	}
	for _, f := range n.Fields {
		if f.Key == key {
			return f.Value
		}
	}
	return nil
}

// Value is the node as plain Go data: nil, bool, int64, float64, string, []any
// and map[string]any.
func (n *Node) Value() any {
	if n == nil {
		return nil
	}
	switch n.Kind {
	case Bool:
		return n.Bool
	case Int:
		return n.Int
	case Float:
		return n.Float
	case String:
		return n.Str
	case List:
		l := make([]any, len(n.Items))
		for i, item := range n.Items {
			l[i] = item.Value()
		}
		return l
	case Map:
		m := make(map[string]any, len(n.Fields))
		for _, f := range n.Fields {
			m[f.Key] = f.Value.Value()
		}
		return m
	}
	return nil
}
