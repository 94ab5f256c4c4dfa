package cel

import "slices"

// What makes another condition needless, among conditions that are never an error.

// fewTerms bounds what is compared with one another.
const fewTerms = 8

// FalseWith tells that b is false wherever c is, and no error there. It may not see it.
//
//	o.m.exists(y, has(y.a) && o.?l.orValue([]).exists(x, ...))    has(o.l)
func (b Bool) FalseWith(c Bool) bool { return b.n.falseWith(c.n) }

func (n *node) falseWith(c *node) bool {
	switch {
	case equal(n, c):
		return true
	case n.op == opAnd:
		return slices.ContainsFunc(n.args, func(term *node) bool { return term.falseWith(c) })
	case n.macro() != MacroExists || len(n.vars) != 1:
		return false
	case c.macro() == MacroExists && slices.Equal(n.vars, c.vars) && equal(n.args[0], c.args[0]) && n.args[1].falseWith(c.args[1]):
		return true
	}
	return n.finds(c) || (Value{c}).Count(n.vars[0]) == 0 && n.args[1].falseWith(c)
}

// finds tells that c asks whether there is anything in the list that n searches, or the list.
func (n *node) finds(c *node) bool {
	if c.operator() == Differs && c.args[1].lit == int64(0) {
		of, ok := c.args[0].sized()
		return ok && equal(of, n.args[0])
	}
	list := presence{op: opAnd}.there(c)
	return list != nil && presence{quantifier: MacroExists}.searches(n, list)
}

// withoutNeedless are the terms of a conjunction without those with which another one is false.
func withoutNeedless(terms []*node) []*node {
	for i := 0; i < len(terms) && len(terms) <= fewTerms; i++ {
		if slices.ContainsFunc(terms, func(t *node) bool { return t != terms[i] && t.falseWith(terms[i]) }) {
			terms = slices.Delete(slices.Clone(terms), i, i+1)
			i--
		}
	}
	return terms
}
