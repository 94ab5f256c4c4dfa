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
