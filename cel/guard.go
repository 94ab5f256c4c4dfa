package cel

import "slices"

// A guarded expression asks whether what it reads is there before it reads it, so
// that it is false instead of an error. presence.go says what must be there, shape.go
// what is always there.

// Guarded is true exactly where b is. Where b is an error because of something that
// is not there, a field or an element, or a field of null, it is false; where b is
// another error, it is false or an error. What b asks for itself is not asked for again.
func (b Bool) Guarded(s Surroundings) Bool { return b.guardedAs(true, s) }

// GuardedNot is true exactly where b is false; else it is as Guarded.
func (b Bool) GuardedNot(s Surroundings) Bool { return b.guardedAs(false, s) }

// Present is true wherever b is true or false. Where b is an error because of
// something that is not there, it is false.
func (b Bool) Present(s Surroundings) Bool {
	g := newGuard(s)
	return bounded(and(g.needs(b.n)), b)
}

func (b Bool) guardedAs(want bool, s Surroundings) Bool {
	g := newGuard(s)
	out, _ := g.guarded(b.n, want, nil)
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

// A guardContext knows what the variables in scope stand for. Its lists of nodes are
// conditions: what is asked for, or is known to hold.
type guardContext struct {
	Surroundings
	bound scoped[inferred]
	asked map[string]conditions // what each composed variable needs, once it was asked
}

func newGuard(s Surroundings) *guardContext {
	return &guardContext{Surroundings: s, asked: map[string]conditions{}}
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
	return And(append(bools(c), more...)...)
}

func literally(n *node, want bool) Bool {
	if want {
		return Bool{Value{n}}
	}
	return Not(Bool{Value{n}})
}

// guarded is true where n has the wanted truth value, and false where it has the
// other or something is missing, given what is known. asks tells that it is more
// than n or its negation.
func (g *guardContext) guarded(n *node, want bool, known conditions) (b Bool, asks bool) {
	switch {
	case n.op == opNot:
		b, asks = g.guarded(n.args[0], !want, known)
	case n.op == opAnd || n.op == opOr:
		if (n.op == opAnd) == want {
			b, asks = g.each(n, want, known)
		} else {
			b, asks = g.some(n, want, known)
		}
	case n.op == opCond:
		b, asks = g.choice(n, want, known)
	case n.isQuantifier():
		b, asks = g.quantified(n, want, known)
	default:
		missing := g.needs(n).without(known)
		b, asks = and(missing, literally(n, want)), len(missing) > 0
	}
	if !asks {
		b = literally(n, want)
	}
	return b, asks
}

func (n *node) isQuantifier() bool {
	return n.macro() == MacroAll || n.macro() == MacroExists
}

// each guards what must all be so: each part may rely on those before it.
func (g *guardContext) each(n *node, want bool, known conditions) (Bool, bool) {
	var parts []Bool
	asks := false
	for _, a := range n.args {
		part, more := g.guarded(a, want, known)
		parts, asks = append(parts, part), asks || more
		known = known.and(g.tells(a, want))
	}
	return And(parts...), asks
}

// some guards what only one part must be. What every part needs comes first. A
// part that asks for nothing more is a value, so those after it may rely on its
// being the other one.
func (g *guardContext) some(n *node, want bool, known conditions) (Bool, bool) {
	first := g.implied(n, want, false).without(known)
	known = known.and(first)
	asks := len(first) > 0
	var parts []Bool
	for _, a := range n.args {
		part, more := g.guarded(a, want, known)
		parts, asks = append(parts, part), asks || more
		if !more {
			known = known.and(g.tells(a, !want))
		}
	}
	return and(first, Or(parts...)), asks
}

func (g *guardContext) choice(n *node, want bool, known conditions) (Bool, bool) {
	c := n.args[0]
	first := g.needs(c).without(known)
	known = known.and(first)
	yes, asks1 := g.guarded(n.args[1], want, known.and(g.tells(c, true)))
	no, asks2 := g.guarded(n.args[2], want, known.and(g.tells(c, false)))
	return and(first, CondBool(Bool{Value{c}}, yes, no)), len(first) > 0 || asks1 || asks2
}

func (g *guardContext) quantified(n *node, want bool, known conditions) (Bool, bool) {
	first := g.needsItems(n.args[0]).without(known)
	// inside, what speaks of the variables that n binds is of others
	outer := slices.DeleteFunc(slices.Clone(known.and(first)), func(k *node) bool { return k.readsAny(n.vars) })
	body, asks := g.inside(n).guarded(n.args[1], want, outer)
	m := *n
	m.args = []*node{n.args[0], body.n}
	if dual, ok := n.macro().dual(); ok && !want {
		m.name = string(dual)
	}
	return and(first, Bool{Value{newNode(m)}}), len(first) > 0 || asks
}

// inside is the guard in the body of a macro.
func (g *guardContext) inside(n *node) *guardContext {
	list := g.infer(n.args[0])
	in := *g
	in.bound = g.bound.in(n, inferred{}, inferred{elemOf(list.shape), list.data})
	return &in
}

// tells is what holds where n has a truth value.
func (g *guardContext) tells(n *node, value bool) conditions { return g.implied(n, value, true) }

// implied is what must be there for n to have a truth value; with self, it includes
// what n itself says then.
func (g *guardContext) implied(n *node, value, self bool) conditions {
	switch {
	case n.op == opNot:
		return g.implied(n.args[0], !value, self)
	case n.op == opAnd || n.op == opOr:
		out := g.implied(n.args[0], value, self)
		for _, a := range n.args[1:] {
			if more := g.implied(a, value, self); (n.op == opAnd) == value {
				out = out.and(more)
			} else {
				out = out.common(more)
			}
		}
		return out
	case n.op == opCond:
		return g.needs(n.args[0])
	case n.isQuantifier():
		return g.needsItems(n.args[0])
	}
	out := g.needs(n)
	if self {
		out = out.and(conditions{literally(n, value).n})
	}
	return out
}
