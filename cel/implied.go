package cel

import "slices"

// What follows from what.

// fewTerms bounds what is compared with one another.
const fewTerms = 8

// withoutImplied are the terms of a disjunction without those that imply another one, or of a
// conjunction without those that another one implies. Only questions to one value are compared:
// where that is an error, both are.
//
//	x == '' || x != 'a'    x != 'a'
//	x == 'b' && x != 'a'   x == 'b'
func withoutImplied(terms []*node, o op) []*node {
	bySubject := map[uint64][]*node{}
	for _, t := range terms {
		if q, ok := questionOf(t); ok {
			bySubject[q.subject.hash] = append(bySubject[q.subject.hash], t)
		}
	}
	return slices.DeleteFunc(slices.Clone(terms), func(t *node) bool {
		q, ok := questionOf(t)
		return ok && slices.ContainsFunc(bySubject[q.subject.hash], func(u *node) bool {
			from, to := t, u
			if o == opAnd {
				from, to = u, t
			}
			return u != t && implies(from, to) && (!implies(to, from) || u.size < t.size)
		})
	})
}

// implies tells that b is true wherever a is. It may not see it.
func implies(a, b *node) bool {
	if equal(a, b) {
		return true
	}
	if a.isQuantifier() && a.macro() == b.macro() && slices.Equal(a.vars, b.vars) && equal(a.args[0], b.args[0]) {
		return implies(a.args[1], b.args[1])
	}
	p, ok := questionOf(a)
	q, too := questionOf(b)
	return ok && too && p.implies(q)
}

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

// A question asks whether a value is among some literals, texts or truth values, or
// whether it is none of them. instead is what it is taken for where it is missing.
type question struct {
	subject *node
	instead *node // nil where it is always there
	among   []*node
	none    bool // of them
}

func questionOf(n *node) (q question, ok bool) {
	switch {
	case n.op == opNot:
		q, ok = questionOf(n.args[0])
		return q.opposite(), ok
	case n.operator() == Equals || n.operator() == Differs:
		q = question{subject: n.args[0], among: n.args[1:], none: n.operator() == Differs}
	case n.operator() == In && n.args[1].op == opList:
		q = question{subject: n.args[0], among: n.args[1].args}
	case n.isOrValue():
		q = question{subject: n, among: []*node{True().n}}
	default:
		return q, false
	}
	if q.subject.isOrValue() {
		q.subject, q.instead = q.subject.args[0], q.subject.args[1]
	}
	return q.normal()
}

// normal is q with one way of asking for a truth value. ok tells that all literals
// are of one type that is compared with no other.
func (q question) normal() (question, bool) {
	if len(q.among) == 0 || q.instead != nil && q.instead.op != q.among[0].op {
		return q, false
	}
	kind := q.among[0].op
	if kind != opString && kind != opBool || slices.ContainsFunc(q.among, func(l *node) bool { return l.op != kind }) {
		return q, false
	}
	if kind == opBool && q.none {
		return q.opposite(), len(q.among) == 1
	}
	return q, kind == opString || len(q.among) == 1
}

// opposite is the question with the other answer.
func (q question) opposite() question {
	if len(q.among) == 1 && q.among[0].op == opBool {
		return question{q.subject, q.instead, []*node{Lit(q.among[0].lit == false).n}, false}
	}
	q.none = !q.none
	return q
}

// says is the answer for a literal.
func (q question) says(l *node) bool { return q.has(l) != q.none }

func (q question) has(l *node) bool {
	return slices.ContainsFunc(q.among, func(m *node) bool { return equal(l, m) })
}

// implies tells that r is answered with yes wherever q is.
func (q question) implies(r question) bool {
	if !equal(q.subject, r.subject) || q.among[0].op != r.among[0].op || (q.instead == nil) != (r.instead == nil) {
		return false
	}
	if q.instead != nil && q.says(q.instead) && !r.says(r.instead) {
		return false
	}
	switch {
	case !q.none: // each of these
		return !slices.ContainsFunc(q.among, func(l *node) bool { return !r.says(l) })
	case r.none: // all but these
		return !slices.ContainsFunc(r.among, func(l *node) bool { return !q.has(l) })
	}
	return false
}
