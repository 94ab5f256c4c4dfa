package cel

import "slices"

// What is known of the values that an expression reads: the variables of the request
// by their schema, and from them the fields, the elements and what macros make.

// A Shape is what is known of the values of an expression. Shapes are compared
// with ==. nil knows nothing.
type Shape interface {
	// Field is the shape of a field, and whether every value has that field.
	Field(name string) (shape Shape, always bool)
	// Elem is the shape of the elements of a list, or of the values of a map.
	Elem() Shape
}

// fieldOf is the shape of a field; nil where nothing is known.
func fieldOf(s Shape, name string) Shape {
	if s == nil {
		return nil
	}
	field, _ := s.Field(name)
	return field
}

// elemOf is the shape of the elements; nil where nothing is known.
func elemOf(s Shape) Shape {
	if s == nil {
		return nil
	}
	return s.Elem()
}

// A NullableShape knows whether values of a shape may be null where they are there,
// as the rules of a ClusterRole without any.
type NullableShape interface {
	Shape
	Nullable() bool
}

// A Root is a variable of the request, as object is.
type Root struct {
	Name  string
	Shape Shape
	Null  bool // it may be null
}

// Surroundings are what an expression reads.
type Surroundings struct {
	Roots     []Root
	Variables func(name string) (Value, bool) // the composed variables
}

// inferred is what is known of a value: its shape, and whether it is data, of which
// has() can be asked. An optional value, for one, is none.
type inferred struct {
	shape Shape
	data  bool
}

// isList tells that n cannot be read by a number unless it is a list: it is data
// of the request, whose maps have texts for keys, or what makes lists.
func (g *guardContext) isList(n *node) bool {
	switch n.op {
	case opMember:
		return n.function() == FuncSplit || n.function() == FuncFindAll
	case opMacro:
		return n.macro() == MacroFilter || n.macro() == MacroMap
	}
	path, ok := Value{n}.Path()
	return ok && isRoot(path[0]) && g.infer(n).data
}

func (g *guardContext) root(n *node) (Root, bool) {
	if _, bound := g.bound.of(n.name); n.op != opIdent || bound {
		return Root{}, false
	}
	i := slices.IndexFunc(g.Roots, func(r Root) bool { return r.Name == n.name })
	if i < 0 {
		return Root{}, false
	}
	return g.Roots[i], true
}

// infer is what is known of the value of n.
func (g *guardContext) infer(n *node) inferred {
	switch n.op {
	case opNull, opBool, opInt, opUint, opDouble, opString, opBytes:
		return inferred{data: true}
	case opIdent:
		if s, bound := g.bound.of(n.name); bound {
			return s
		}
		r, ok := g.root(n)
		return inferred{r.Shape, ok}
	case opSelect, opIndex:
		if outside, expr, ok := g.variable(n); ok {
			return outside.infer(expr)
		}
		return g.infer(n.args[0]).step(n)
	case opBinary, opList, opMap:
		return g.inferAlike(n.args, n.op == opBinary)
	case opCond:
		return g.inferAlike(n.args[1:], true)
	case opCall:
		if n.function() == FuncDyn {
			return g.infer(n.args[0])
		}
	case opMember:
		if n.function() == FuncOrValue {
			return g.inferOrValue(g.inferContent(n.args[0]), n.args[1])
		}
	case opMacro:
		switch n.macro() {
		case MacroFilter:
			return g.infer(n.args[0])
		case MacroMap:
			elem := g.inside(n).infer(n.args[len(n.args)-1])
			return inferred{listShape{elem.shape}, elem.data}
		}
	}
	return inferred{}
}

// inferOrValue is a value for which another stands in where it is missing.
func (g *guardContext) inferOrValue(s inferred, n *node) inferred {
	if (n.op == opList || n.op == opMap) && len(n.args) == 0 {
		if elemOf(s.shape) == nil { // an empty map has none of an object's fields
			s.shape = nil
		}
		return s
	}
	other := g.infer(n)
	if other.shape != s.shape {
		s.shape = nil
	}
	s.data = s.data && other.data
	return s
}

// inferAlike is what is known of all of several values.
func (g *guardContext) inferAlike(ns []*node, shaped bool) inferred {
	out := inferred{data: true}
	for i, n := range ns {
		s := g.infer(n)
		if i == 0 {
			out.shape = s.shape
		}
		if out.shape != s.shape {
			out.shape = nil
		}
		out.data = out.data && s.data
	}
	if !shaped {
		out.shape = nil
	}
	return out
}

// inferContent is what is known of the value inside of an optional one.
func (g *guardContext) inferContent(n *node) inferred {
	switch n.op {
	case opOpt, opSelect, opOptIdx:
		of := g.infer(n.args[0])
		if !of.data { // it may be optional itself
			of = g.inferContent(n.args[0])
		}
		return of.step(n)
	}
	return inferred{}
}

// step is what n selects or reads by an index of s.
func (s inferred) step(n *node) inferred {
	if name, ok := n.field(); ok {
		return inferred{fieldOf(s.shape, name), s.data}
	}
	return inferred{elemOf(s.shape), s.data}
}

// A listShape is a list of which only the elements are known.
type listShape struct{ elem Shape }

func (listShape) Field(string) (Shape, bool) { return nil, false }
func (l listShape) Elem() Shape              { return l.elem }
