package policy

import (
	"regexp"
	"slices"

	"github.com/kvap/kvap/diag"
)

// A NodeKind is the JSON type of a Node.
type NodeKind int

// The kinds. Integers and other numbers are told apart as the API server does
// after kubectl sent the file: 5, but also 5.0 and 1e3, are Ints (see scalar.go);
// 0.5 and what exceeds int64 are Floats.
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

// Mentions tells whether some text in n matches, be it a key.
func (n *Node) Mentions(text *regexp.Regexp) bool {
	if n == nil {
		return false
	}
	return text.MatchString(n.Str) || slices.ContainsFunc(n.Items, func(item *Node) bool { return item.Mentions(text) }) ||
		slices.ContainsFunc(n.Fields, func(f Field) bool { return text.MatchString(f.Key) || f.Value.Mentions(text) })
}

// Bytes is about how long the text is that n was read from.
func (n *Node) Bytes() int {
	if n == nil {
		return 0
	}
	size := 1 + len(n.Str)
	for _, item := range n.Items {
		size += item.Bytes()
	}
	for _, f := range n.Fields {
		size += len(f.Key) + f.Value.Bytes()
	}
	return size
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

// edit is a copy of the tree, with change applied to every node of the copy, a
// parent before its children.
func (n *Node) edit(change func(*Node)) *Node {
	if n == nil {
		return nil
	}
	c := *n
	c.Fields = append([]Field(nil), n.Fields...)
	c.Items = append([]*Node(nil), n.Items...)
	change(&c)
	for i := range c.Fields {
		c.Fields[i].Value = c.Fields[i].Value.edit(change)
	}
	for i := range c.Items {
		c.Items[i] = c.Items[i].edit(change)
	}
	return &c
}

// with is a copy of a map in which key has another value; a nil value removes it.
// A key that is new comes last.
func (n *Node) with(key string, value *Node) *Node {
	c := *n
	c.Fields = make([]Field, 0, len(n.Fields)+1)
	done := false
	for _, f := range n.Fields {
		if f.Key == key {
			done = true
			if value == nil {
				continue
			}
			f.Value = value
		}
		c.Fields = append(c.Fields, f)
	}
	if !done && value != nil {
		c.Fields = append(c.Fields, Field{Key: key, Pos: value.Pos, Value: value})
	}
	return &c
}
