package cel

import (
	"cmp"
	"slices"
)

// MergeLoops makes one loop of those that go through the same list:
// l.exists(c, p) || l.exists(d, q) becomes l.exists(c, p || q'), and likewise for
// all and &&. What stands beside a loop goes along with one beside which nothing does:
// l.exists(c, p) || s && l.exists(d, q) becomes l.exists(c, p || s && q'). In a disjunction, what costs less stands first, and what
// implies another term is left out. It is for conditions that are never an error: of others,
// the loops stop at other errors.
func (b Bool) MergeLoops() Bool { return Bool{Value{joinedLoops(b.n, (*node).along, cheapestFirst)}} }

// JoinLoops makes one loop of those beside one another that go through the same list, as
// MergeLoops does, and leaves all else. What b is, the result is: all and exists go on
// behind an error, as && and || do.
func (b Bool) JoinLoops() Bool {
	same := func(n *node) *node { return n }
	return Bool{Value{joinedLoops(b.n, func(n *node, _ MacroName) *node { return n }, same)}}
}

// joinedLoops joins the loops in n, with what goes along with them, and puts what becomes of
// each part in order.
func joinedLoops(n *node, along func(*node, MacroName) *node, ordered func(*node) *node) *node {
	switch n.op {
	case opAnd:
		n = mergedTerms(n, MacroAll, along)
	case opOr:
		n = mergedTerms(n, MacroExists, along)
	}
	return ordered(n.each(func(_ int, a *node) *node { return joinedLoops(a, along, ordered) }))
}

// along is s && l.exists(c, p) as l.exists(c, s && p), and s || l.all(c, p) as l.all(c, s || p),
// where s has no loop of its own; else it is n.
func (n *node) along(quantifier MacroName) *node {
	if n.op != opAnd && n.op != opOr || (n.op == opAnd) != (quantifier == MacroExists) {
		return n
	}
	i := slices.IndexFunc(n.args, func(a *node) bool { return a.macro() == quantifier && len(a.vars) == 1 })
	if i < 0 {
		return n
	}
	loop, beside := n.args[i], slices.Delete(slices.Clone(n.args), i, i+1)
	for _, s := range beside {
		if (Value{s}).Count(loop.vars[0]) > 0 || s.some(func(n *node) bool { return n.op == opMacro }) {
			return n
		}
	}
	return loop.with([]*node{loop.args[0], newNode(node{op: n.op, args: append(beside, loop.args[1])})})
}

// cheapestFirst is a disjunction with what costs less first, and without what implies
// another term; and a conjunction without terms that another one needs not.
func cheapestFirst(n *node) *node {
	if n.op == opAnd {
		return And(bools(withoutNeedless(n.args))...).n
	}
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
func mergedTerms(n *node, quantifier MacroName, along func(*node, MacroName) *node) *node {
	loops := map[uint64][]int{} // places of loops among the terms, by the hash of their lists
	terms := slices.Clone(n.args)
	isLoop := func(a *node) bool { return a.macro() == quantifier && len(a.vars) == 1 }
	// Beside a loop may stand what asks whether there is a list: it goes along with one that does not.
	loop := func(a *node) *node {
		b := along(a, quantifier)
		if slices.ContainsFunc(n.args, func(c *node) bool { return isLoop(c) && isLoop(b) && equal(b.args[0], c.args[0]) }) {
			return b
		}
		return a
	}
	for i, a := range n.args {
		if a = loop(a); !isLoop(a) {
			continue
		}
		h := a.args[0].hash
		at := slices.IndexFunc(loops[h], func(i int) bool { return equal(loop(n.args[i]).args[0], a.args[0]) })
		if at < 0 {
			loops[h] = append(loops[h], i)
			continue
		}
		at = loops[h][at]
		terms[at], terms[i] = joined(n.op, loop(terms[at]), a), nil
	}
	terms = slices.DeleteFunc(terms, func(t *node) bool { return t == nil })
	if len(terms) == len(n.args) {
		return n
	}
	return andOr(n.op, bools(terms)).n
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
	body := andOr(op, []Bool{p.AsBool(), q.AsBool()})
	return Value{a.args[0]}.Macro(a.macro(), Ident(x), body.Value).n
}
