package cel

import (
	"cmp"
	"slices"
)

// MergeLoops makes one loop of those that go through the same list:
// l.exists(c, p) || l.exists(d, q) becomes l.exists(c, p || q'), and likewise for
// all and &&. In a disjunction, what costs less stands first, and what implies another
// term is left out. It is for conditions that are never an error: of others, the loops
// stop at other errors.
func (b Bool) MergeLoops() Bool { return Bool{Value{joinedLoops(b.n, cheapestFirst)}} }

// JoinLoops makes one loop of those beside one another that go through the same list, as
// MergeLoops does, and leaves all else. What b is, the result is: all and exists go on
// behind an error, as && and || do.
func (b Bool) JoinLoops() Bool {
	return Bool{Value{joinedLoops(b.n, func(n *node) *node { return n })}}
}

// joinedLoops joins the loops in n, and puts what becomes of each part in order.
func joinedLoops(n *node, ordered func(*node) *node) *node {
	switch n.op {
	case opAnd:
		n = mergedTerms(n, MacroAll)
	case opOr:
		n = mergedTerms(n, MacroExists)
	}
	args := make([]*node, len(n.args))
	for i, a := range n.args {
		args[i] = joinedLoops(a, ordered)
	}
	return ordered(n.with(args))
}

// cheapestFirst is a disjunction with what costs less first, and without what implies
// another term.
func cheapestFirst(n *node) *node {
	if n.op != opOr {
		return n
	}
	args := withoutImplied(n.args)
	if len(args) == 1 {
		return args[0]
	}
	slices.SortStableFunc(args, func(a, b *node) int { return cmp.Compare(Cost(Value{a}, nil), Cost(Value{b}, nil)) })
	return n.with(args)
}

// mergedTerms puts the quantifiers among the terms of n together, each where its
// list comes up first.
func mergedTerms(n *node, quantifier MacroName) *node {
	var terms []*node
	loops := map[uint64][]int{} // places of loops among terms, by the hash of their lists
	for _, a := range n.args {
		if a.macro() != quantifier || len(a.vars) != 1 {
			terms = append(terms, a)
			continue
		}
		h := a.args[0].hash
		i := slices.IndexFunc(loops[h], func(i int) bool { return equal(terms[i].args[0], a.args[0]) })
		if i < 0 {
			loops[h] = append(loops[h], len(terms))
			terms = append(terms, a)
			continue
		}
		at := loops[h][i]
		terms[at] = joined(n.op, terms[at], a)
	}
	if len(terms) == len(n.args) {
		return n
	}
	if n.op == opAnd {
		return And(bools(terms)...).n
	}
	return Or(bools(terms)...).n
}

func bools(ns []*node) []Bool {
	out := make([]Bool, len(ns))
	for i, n := range ns {
		out[i] = Bool{Value{n}}
	}
	return out
}

// joined is one loop for two through the same list.
func joined(op op, a, b *node) *node {
	x, p, q := a.vars[0], Value{a.args[1]}, Value{b.args[1]}
	if y := b.vars[0]; y != x {
		if q.Count(x) > 0 { // a variable from further out
			scope := &Scope{}
			scope.reserveAll([]*node{p.n, q.n})
			fresh := scope.Fresh(x)
			x, p = fresh, p.Rename(x, fresh)
		}
		q = q.Rename(y, x)
	}
	body := Or(p.AsBool(), q.AsBool())
	if op == opAnd {
		body = And(p.AsBool(), q.AsBool())
	}
	return Value{a.args[0]}.Macro(a.macro(), Ident(x), body.Value).n
}
