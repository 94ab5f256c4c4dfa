package cel

import "slices"

// needs is what must be there for n to have a value.
func (w *surveyor) needs(n *node) conditions {
	switch n.op {
	case opIdent:
		return nil
	case opSelect:
		if v, ok := w.variable(n); ok {
			return v.needs()
		}
		return w.needs(n.args[0]).and(w.needsField(n.args[0], n.name))
	case opHas:
		return w.needs(n.args[0])
	case opIndex:
		return w.needsAll(n.args).and(w.needsIndex(n))
	case opMember:
		if n.name == "or" || n.name == "orValue" { // evaluate their argument when they must
			return w.needs(n.args[0])
		}
	case opAnd, opOr:
		return w.needsTruth(n)
	case opBinary:
		if l := n.args[1]; n.name == "in" && l.op == opList && len(l.args) == 0 { // false, whatever is looked for
			return nil
		}
	case opCond:
		return w.needs(n.args[0]).and(w.needsBranch(n))
	case opMacro:
		if n.isQuantifier() {
			return w.needsTruth(n)
		}
		return w.needs(n.args[0]).and(w.needsBody(n))
	}
	return w.needsAll(n.args)
}

func (w *surveyor) needsAll(ns []*node) conditions {
	var out conditions
	for _, n := range ns {
		out = out.and(w.needs(n))
	}
	return out
}

// needsTruth is that n is true or false, where that is a question.
func (w *surveyor) needsTruth(n *node) conditions {
	yes, asks1 := w.judge(n, true, nil)
	no, asks2 := w.judge(n, false, nil)
	if !asks1 && !asks2 {
		return nil
	}
	return conditions{Or(yes, no).n}
}

func (w *surveyor) needsBranch(n *node) conditions {
	c := Bool{Value{n.args[0]}}
	yes := w.needs(n.args[1]).without(w.tells(n.args[0], true))
	no := w.needs(n.args[2]).without(w.tells(n.args[0], false))
	switch {
	case len(yes)+len(no) == 0:
		return nil
	case len(yes) == 0:
		return conditions{Or(c, and(no)).n}
	case len(no) == 0:
		return conditions{Implies(c, and(yes)).n}
	}
	return conditions{CondBool(c, and(yes), and(no)).n}
}

// needsBody is what every element must have for a list to be filtered or mapped.
func (w *surveyor) needsBody(n *node) conditions {
	if len(n.vars) != 1 || n.name != "map" && n.name != "filter" && n.name != "exists_one" {
		return nil
	}
	in := w.inside(n)
	need := and(in.needs(n.args[1]))
	if len(n.args) == 3 {
		more := in.needs(n.args[2]).without(in.tells(n.args[1], true))
		need = And(need, Implies(Bool{Value{n.args[1]}}, and(more)))
		if len(more) == 0 {
			need = and(in.needs(n.args[1]))
		}
	}
	if need.IsTrue() {
		return nil
	}
	return conditions{Value{n.args[0]}.Macro("all", n.vars[0], need.Value).n}
}

// needsField is that a value has a field.
func (w *surveyor) needsField(of *node, name string) conditions {
	s := w.look(of)
	if !s.data {
		return nil
	}
	if s.shape != nil {
		if _, always := s.shape.Field(name); always {
			if r, ok := w.root(of); ok && r.Null {
				return conditions{Value{of}.Ne(Null()).n}
			}
			return nil
		}
	}
	return conditions{Value{of}.Has(name).n}
}

// needsIndex is that a list is long enough, or that a map has a key, for a literal.
func (w *surveyor) needsIndex(n *node) conditions {
	switch i := n.args[1]; {
	case i.op == opString && w.look(n.args[0]).data:
		return conditions{Value{i}.In(Value{n.args[0]}).n}
	case i.op == opInt && i.lit.(int64) >= 0 && w.isList(n.args[0]):
		return conditions{Value{n.args[0]}.Size().Compare(">", Value{i}).n}
	}
	return nil
}

// isList tells that n cannot be read by a number unless it is a list: it is data
// of the request, whose maps have texts for keys, or what makes lists.
func (w *surveyor) isList(n *node) bool {
	switch n.op {
	case opMember:
		return n.name == "split" || n.name == "findAll"
	case opMacro:
		return n.name == "filter" || n.name == "map"
	}
	path, ok := Value{n}.Path()
	return ok && isRoot(path[0]) && w.look(n).data
}

func (w *surveyor) root(n *node) (Root, bool) {
	if n.op != opIdent || slices.ContainsFunc(w.bound, func(b binding) bool { return b.name == n.name }) {
		return Root{}, false
	}
	i := slices.IndexFunc(w.Roots, func(r Root) bool { return r.Name == n.name })
	if i < 0 {
		return Root{}, false
	}
	return w.Roots[i], true
}

// A composed variable is seen from outside of all macros.
type composed struct {
	w    *surveyor
	name string
	expr *node
}

func (c composed) needs() conditions {
	need, done := c.w.asked[c.name]
	if !done {
		need = c.w.needs(c.expr)
		c.w.asked[c.name] = need
	}
	return need
}

// variable is the composed variable that n selects.
func (w *surveyor) variable(n *node) (composed, bool) {
	if n.op != opSelect || n.args[0].op != opIdent || n.args[0].name != "variables" || w.Variables == nil {
		return composed{}, false
	}
	v, ok := w.Variables(n.name)
	return composed{&surveyor{Surroundings: w.Surroundings, asked: w.asked}, n.name, v.n}, ok
}

// look is what is known of the value of n.
func (w *surveyor) look(n *node) seen {
	switch n.op {
	case opNull, opBool, opInt, opUint, opDouble, opString, opBytes:
		return seen{data: true}
	case opIdent:
		for _, b := range slices.Backward(w.bound) {
			if b.name == n.name {
				return b.seen
			}
		}
		r, ok := w.root(n)
		return seen{r.Shape, ok}
	case opSelect:
		if v, ok := w.variable(n); ok {
			return v.w.look(v.expr)
		}
		return w.look(n.args[0]).field(n.name)
	case opIndex:
		if i := n.args[1]; i.op == opString {
			return w.look(n.args[0]).field(i.lit.(string))
		}
		return w.look(n.args[0]).elem()
	case opBinary, opList, opMap:
		return w.alike(n.args, n.op == opBinary)
	case opCond:
		return w.alike(n.args[1:], true)
	case opCall:
		if n.name == "dyn" {
			return w.look(n.args[0])
		}
	case opMember:
		if n.name == "orValue" {
			return w.otherwise(w.optional(n.args[0]), n.args[1])
		}
	case opMacro:
		return w.made(n)
	}
	return seen{}
}

// made is what is known of the list that a macro makes.
func (w *surveyor) made(n *node) seen {
	switch {
	case n.name == "filter":
		return w.look(n.args[0])
	case n.name == "map":
		elem := w.inside(n).look(n.args[len(n.args)-1])
		return seen{listShape{elem.shape}, elem.data}
	}
	return seen{}
}

// otherwise is a value for which another stands in where it is missing.
func (w *surveyor) otherwise(s seen, n *node) seen {
	if (n.op == opList || n.op == opMap) && len(n.args) == 0 {
		if s.shape != nil && s.shape.Elem() == nil { // an empty map has none of an object's fields
			s.shape = nil
		}
		return s
	}
	other := w.look(n)
	if other.shape != s.shape {
		s.shape = nil
	}
	s.data = s.data && other.data
	return s
}

// alike is what is known of all of several values.
func (w *surveyor) alike(ns []*node, shaped bool) seen {
	out := seen{data: true}
	for i, n := range ns {
		s := w.look(n)
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

// optional is what is known of the value inside of an optional one.
func (w *surveyor) optional(n *node) seen {
	switch n.op {
	case opOpt, opSelect:
		return w.beyond(n.args[0]).field(n.name)
	case opOptIdx:
		if i := n.args[1]; i.op == opString {
			return w.beyond(n.args[0]).field(i.lit.(string))
		}
		return w.beyond(n.args[0]).elem()
	}
	return seen{}
}

// beyond is what is known of a value that may be optional.
func (w *surveyor) beyond(n *node) seen {
	if s := w.look(n); s.data {
		return s
	}
	return w.optional(n)
}

func (s seen) field(name string) seen {
	if s.shape == nil {
		return s
	}
	shape, _ := s.shape.Field(name)
	return seen{shape, s.data}
}

func (s seen) elem() seen {
	if s.shape == nil {
		return s
	}
	return seen{s.shape.Elem(), s.data}
}

// A listShape is a list of which only the elements are known.
type listShape struct{ elem Shape }

func (listShape) Field(string) (Shape, bool) { return nil, false }
func (l listShape) Elem() Shape              { return l.elem }
