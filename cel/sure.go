package cel

import "slices"

// A Shape is what is known of the values of an expression. Shapes are compared
// with ==. nil knows nothing.
type Shape interface {
	// Field is the shape of a field, and whether every value has that field.
	Field(name string) (shape Shape, always bool)
	// Elem is the shape of the elements of a list, or of the values of a map.
	Elem() Shape
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

// Sure is true exactly where b is. Where b is an error because of something that
// is not there, a field or an element, or a field of null, it is false; where b is
// another error, it is false or an error. What b asks for itself is not asked for again.
func (b Bool) Sure(s Surroundings) Bool { return b.surely(true, s) }

// Refuted is true exactly where b is false; else it is as Sure.
func (b Bool) Refuted(s Surroundings) Bool { return b.surely(false, s) }

// Found is true wherever b is true or false. Where b is an error because of
// something that is not there, it is false.
func (b Bool) Found(s Surroundings) Bool {
	w := survey(s)
	return bounded(and(w.needs(b.n)), b)
}

func (b Bool) surely(want bool, s Surroundings) Bool {
	w := survey(s)
	out, _ := w.judge(b.n, want, nil)
	if want {
		return bounded(out, b)
	}
	return bounded(out, Not(b))
}

// bounded is the first expression, or the other one where that is out of proportion.
func bounded(b, short Bool) Bool {
	if b.n.size > 8*short.n.size+100 {
		return short
	}
	return b
}

// A surveyor knows what the variables in scope stand for. Its lists of nodes are
// conditions: what is asked for, or is known to hold.
type surveyor struct {
	Surroundings
	bound []binding
	asked map[string]conditions // what each composed variable needs, once it was asked
}

func survey(s Surroundings) *surveyor {
	return &surveyor{Surroundings: s, asked: map[string]conditions{}}
}

type binding struct {
	name string
	seen
}

// seen is what is known of a value: its shape, and whether it is data, of which
// has() can be asked. An optional value, for one, is none.
type seen struct {
	shape Shape
	data  bool
}

type conditions []*node

func (c conditions) has(n *node) bool {
	return slices.ContainsFunc(c, func(m *node) bool { return equal(m, n) })
}

// and is c with those of d that are new.
func (c conditions) and(d conditions) conditions {
	out := slices.Clip(c)
	for _, n := range d {
		if !out.has(n) {
			out = append(out, n)
		}
	}
	return out
}

func (c conditions) without(d conditions) conditions {
	return slices.DeleteFunc(slices.Clone(c), d.has)
}

func (c conditions) common(d conditions) conditions {
	return slices.DeleteFunc(slices.Clone(c), func(n *node) bool { return !d.has(n) })
}

func and(c conditions, more ...Bool) Bool {
	var bs []Bool
	for _, n := range c {
		bs = append(bs, Bool{Value{n}})
	}
	return And(append(bs, more...)...)
}

func literally(n *node, want bool) Bool {
	if want {
		return Bool{Value{n}}
	}
	return Not(Bool{Value{n}})
}

// judge is true where n has the wanted truth value, and false where it has the
// other or something is missing, given what is known. asks tells that it is more
// than n or its negation.
func (w *surveyor) judge(n *node, want bool, known conditions) (b Bool, asks bool) {
	switch {
	case n.op == opNot:
		b, asks = w.judge(n.args[0], !want, known)
	case n.op == opAnd || n.op == opOr:
		if (n.op == opAnd) == want {
			b, asks = w.each(n, want, known)
		} else {
			b, asks = w.some(n, want, known)
		}
	case n.op == opCond:
		b, asks = w.choice(n, want, known)
	case n.isQuantifier():
		b, asks = w.quantified(n, want, known)
	default:
		missing := w.needs(n).without(known)
		b, asks = and(missing, literally(n, want)), len(missing) > 0
	}
	if !asks {
		b = literally(n, want)
	}
	return b, asks
}

func (n *node) isQuantifier() bool {
	return n.op == opMacro && (n.name == "all" || n.name == "exists")
}

// each judges what must all be so: each part may rely on those before it.
func (w *surveyor) each(n *node, want bool, known conditions) (Bool, bool) {
	var parts []Bool
	asks := false
	for _, a := range n.args {
		part, more := w.judge(a, want, known)
		parts, asks = append(parts, part), asks || more
		known = known.and(w.tells(a, want))
	}
	return And(parts...), asks
}

// some judges what only one part must be. What every part needs comes first. A
// part that asks for nothing more is a value, so those after it may rely on its
// being the other one.
func (w *surveyor) some(n *node, want bool, known conditions) (Bool, bool) {
	first := w.implied(n, want, false).without(known)
	known = known.and(first)
	asks := len(first) > 0
	var parts []Bool
	for _, a := range n.args {
		part, more := w.judge(a, want, known)
		parts, asks = append(parts, part), asks || more
		if !more {
			known = known.and(w.tells(a, !want))
		}
	}
	return and(first, Or(parts...)), asks
}

func (w *surveyor) choice(n *node, want bool, known conditions) (Bool, bool) {
	c := n.args[0]
	first := w.needs(c).without(known)
	known = known.and(first)
	yes, asks1 := w.judge(n.args[1], want, known.and(w.tells(c, true)))
	no, asks2 := w.judge(n.args[2], want, known.and(w.tells(c, false)))
	return and(first, CondBool(Bool{Value{c}}, yes, no)), len(first) > 0 || asks1 || asks2
}

func (w *surveyor) quantified(n *node, want bool, known conditions) (Bool, bool) {
	first := w.needs(n.args[0]).without(known)
	body, asks := w.inside(n).judge(n.args[1], want, w.outer(n, known.and(first)))
	m := *n
	m.args = []*node{n.args[0], body.n}
	if !want {
		m.name = map[string]string{"all": "exists", "exists": "all"}[n.name]
	}
	return and(first, Bool{Value{newNode(m)}}), len(first) > 0 || asks
}

// outer is what is known that does not speak of the variables that n binds.
func (w *surveyor) outer(n *node, known conditions) conditions {
	return slices.DeleteFunc(slices.Clone(known), func(k *node) bool {
		return slices.ContainsFunc(n.vars, func(x string) bool { return Value{k}.Count(x) > 0 })
	})
}

// inside is the surveyor in the body of a macro.
func (w *surveyor) inside(n *node) *surveyor {
	list := w.look(n.args[0])
	elem := seen{data: list.data}
	if list.shape != nil {
		elem.shape = list.shape.Elem()
	}
	in := *w
	in.bound = slices.Clip(w.bound)
	for i, x := range n.vars {
		b := binding{name: x, seen: elem}
		if len(n.vars) == 2 && i == 0 { // an index or a key
			b.seen = seen{}
		}
		in.bound = append(in.bound, b)
	}
	return &in
}

// tells is what holds where n has a truth value.
func (w *surveyor) tells(n *node, value bool) conditions { return w.implied(n, value, true) }

// implied is what must be there for n to have a truth value; with self, it includes
// what n itself says then.
func (w *surveyor) implied(n *node, value, self bool) conditions {
	switch {
	case n.op == opNot:
		return w.implied(n.args[0], !value, self)
	case n.op == opAnd || n.op == opOr:
		out := w.implied(n.args[0], value, self)
		for _, a := range n.args[1:] {
			if more := w.implied(a, value, self); (n.op == opAnd) == value {
				out = out.and(more)
			} else {
				out = out.common(more)
			}
		}
		return out
	case n.op == opCond, n.isQuantifier():
		return w.needs(n.args[0])
	}
	out := w.needs(n)
	if self {
		out = out.and(conditions{literally(n, value).n})
	}
	return out
}

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
