package cel

import "slices"

// How chains of && and || are simplified: what decides them, what is said twice, and
// what their terms have in common.

// andOr simplifies && and || of simplified terms. What is said here of ||
// holds of && with the two in each other's place.
func (s simplifier) andOr(n *node, boolean bool) *node {
	j := chain{s, n.op}
	terms, decided := j.flat(n)
	if decided || j.excludesNothing(terms) {
		return Lit(!j.op.unit()).n
	}
	terms = j.absorb(terms)
	terms = j.discharge(terms)
	terms = j.mergeEqual(terms)
	terms = withoutImplied(terms, j.op)
	m := j.op.of(terms)
	if len(terms) == 1 && !boolean && !m.isBool() {
		return newNode(node{op: n.op, args: []*node{m, Lit(j.op.unit()).n}}) // m, and an error if it is not a boolean
	}
	return j.factor(m)
}

// dual is && for ||, and || for &&.
func (o op) dual() op { return opAnd + opOr - o }

type chain struct {
	simplifier
	op op
}

// unit is what adds nothing to a chain: true to &&.
func (o op) unit() bool { return o == opAnd }

// of is the chain of terms.
func (o op) of(terms []*node) *node {
	switch len(terms) {
	case 0:
		return Lit(o.unit()).n
	case 1:
		return terms[0]
	}
	return newNode(node{op: o, args: terms})
}

// flat are the terms of n and of chains like it within, each once and without
// literals. decided tells that one literal decides the whole.
func (j chain) flat(n *node) (terms []*node, decided bool) {
	seen := nodeSet{}
	var walk func(*node)
	walk = func(n *node) {
		for _, a := range n.args {
			switch {
			case a.op == j.op:
				walk(a)
			case a.op == opBool:
				decided = decided || a.lit.(bool) != j.op.unit()
			case seen.add(a):
				terms = append(terms, a)
			}
		}
	}
	walk(n)
	return terms, decided
}

// excludesNothing finds a || !a, where a cannot err.
func (j chain) excludesNothing(terms []*node) bool {
	seen := setOf(terms)
	return slices.ContainsFunc(terms, func(t *node) bool {
		return t.isBool() && j.isTotal(t) && seen.has(j.negated(t, true))
	})
}

func setOf(ns []*node) nodeSet {
	s := nodeSet{}
	for _, n := range ns {
		s.add(n)
	}
	return s
}

// factors are the terms of a conjunction among the terms of a disjunction.
func (j chain) factors(t *node) []*node { return t.terms(j.op.dual()) }

// terms are those of n, if it is a chain, else n.
func (n *node) terms(o op) []*node {
	if n.op == o {
		return n.args
	}
	return []*node{n}
}

// absorb drops a && b beside a.
func (j chain) absorb(terms []*node) []*node {
	if !slices.ContainsFunc(terms, func(t *node) bool { return t.op == j.op.dual() }) {
		return terms
	}
	byFirst := map[uint64][]*node{} // terms by the hash of their first factor
	for _, t := range terms {
		h := j.factors(t)[0].hash
		byFirst[h] = append(byFirst[h], t)
	}
	return slices.DeleteFunc(slices.Clone(terms), func(t *node) bool {
		return t.op == j.op.dual() && slices.ContainsFunc(t.args, func(f *node) bool {
			return slices.ContainsFunc(byFirst[f.hash], func(u *node) bool {
				return u.size < t.size && j.divides(u, t)
			})
		})
	})
}

// divides tells that all factors of u are factors of t.
func (j chain) divides(u, t *node) bool {
	own := setOf(t.args)
	return !slices.ContainsFunc(j.factors(u), func(f *node) bool { return !own.has(f) })
}

// discharge makes !a || a && b into !a || b. Where a is an error, the former is
// an error, but the latter is true if b is; so a must not err there.
func (j chain) discharge(terms []*node) []*node {
	out := slices.Clone(terms)
	at := map[uint64]int{} // places of terms by their hash
	for i, t := range terms {
		at[t.hash] = i
	}
	beside := func(i int, m *node) bool {
		k, ok := at[m.hash]
		return ok && k != i && equal(out[k], m)
	}
	for i, t := range terms {
		if t.op != j.op.dual() {
			continue
		}
		rest := t.args
		for k := 0; k < len(rest); k++ {
			if !beside(i, j.negated(rest[k], true)) {
				continue
			}
			others := slices.Delete(slices.Clone(rest), k, k+1)
			if j.safe(rest[k], j.op.dual().of(others)) {
				rest, k = others, k-1
			}
		}
		if len(rest) < len(t.args) {
			out[i] = j.op.dual().of(rest)
		}
	}
	return out
}

// safe tells that an error of a makes rest an error too, or leaves it at what is
// no news for the chain: false in ||.
func (j chain) safe(a, rest *node) bool {
	if a.isBool() && j.isTotal(a) {
		return true
	}
	h := a
	if h.op == opNot {
		h = h.args[0]
	}
	return h.op == opHas && rest.selectedIf(h.args[0], !j.op.unit())
}

// mergeEqual makes x == 'a' || x in ['b', 'c'] into x in ['a', 'b', 'c'], and
// likewise x != 'a' && x != 'b'.
func (j chain) mergeEqual(terms []*node) []*node {
	var out []*node
	var merged []*choice
	choices := map[uint64][]*choice{} // by the hash of the value
	for _, t := range terms {
		x, lits, ok := j.choice(t)
		if !ok {
			out = append(out, t)
			continue
		}
		alike := choices[x.hash]
		i := slices.IndexFunc(alike, func(c *choice) bool { return equal(c.x, x) && c.lits[0].op == lits[0].op })
		if i < 0 {
			choices[x.hash] = append(alike, &choice{x: x, lits: slices.Clone(lits), at: len(out)})
			out = append(out, t)
			continue
		}
		c := alike[i]
		if c.terms++; c.terms == 1 {
			merged = append(merged, c)
		}
		c.lits = append(c.lits, lits...)
	}
	for _, c := range merged {
		out[c.at] = j.oneOf(c)
	}
	return out
}

// A choice is a value compared with literals of one type.
type choice struct {
	x     *node
	lits  []*node
	at    int
	terms int // that were merged with the first
}

// choice reads x == 'a' and x in ['a', 'b'], in a conjunction their negations.
func (j chain) choice(t *node) (x *node, lits []*node, ok bool) {
	equals, in := Equals, In
	if j.op == opAnd {
		equals, in = Differs, noOperator
		if t.op == opNot {
			equals, in, t = noOperator, In, t.args[0]
		}
	}
	if t.op != opBinary {
		return nil, nil, false
	}
	x, y := t.args[0], t.args[1]
	switch t.operator() {
	case equals:
		return x, []*node{y}, y.op == opString || y.op == opInt
	case in:
		ok := y.op == opList && len(y.args) > 0 && (y.args[0].op == opString || y.args[0].op == opInt)
		return x, y.args, ok && !slices.ContainsFunc(y.args, func(a *node) bool { return a.op != y.args[0].op })
	}
	return nil, nil, false
}

func (j chain) oneOf(c *choice) *node {
	seen := nodeSet{}
	var lits []*node
	for _, l := range c.lits {
		if seen.add(l) {
			lits = append(lits, l)
		}
	}
	list := newNode(node{op: opList, args: lits})
	n := newNode(node{op: opBinary, name: string(In), args: []*node{c.x, list}})
	if j.op == opAnd {
		return not(n)
	}
	return n
}

// factor makes a && b || a && c into a && (b || c).
func (j chain) factor(n *node) *node {
	if n.op != j.op {
		return n
	}
	common := j.common(n.args)
	if len(common) == 0 {
		return j.op.of(j.grouped(n.args))
	}
	return j.factored(n.args, common)
}

// common are the factors that all terms have.
func (j chain) common(terms []*node) (common []*node) {
	for _, f := range j.factors(terms[0]) {
		if !slices.ContainsFunc(terms[1:], func(t *node) bool { return !setOf(j.factors(t)).has(f) }) {
			common = append(common, f)
		}
	}
	return common
}

// factored are the terms with what they have in common before what they have not.
func (j chain) factored(terms, common []*node) *node {
	shared := setOf(common)
	rest := make([]*node, len(terms))
	for i, t := range terms {
		own := slices.DeleteFunc(slices.Clone(j.factors(t)), shared.has)
		rest[i] = j.op.dual().of(own)
	}
	return j.op.dual().of(append(common, j.op.of(rest)))
}

// grouped are the terms, of which those that begin with the same factor are one: that,
// and what else they have in common, stands before what they have not. A factor that
// comes later in one of them counts where it is not an error: what is before it may ask
// whether it can be asked at all.
func (j chain) grouped(terms []*node) []*node {
	byFactor := map[uint64][]int{} // places of terms by the hashes of the factors that count
	for i, t := range terms {
		for k, f := range j.factors(t) {
			if t.op == j.op.dual() && (k == 0 || f.size > 1 && j.isTotal(f)) {
				byFactor[f.hash] = append(byFactor[f.hash], i)
			}
		}
	}
	var out []*node
	done := make([]bool, len(terms))
	for i, t := range terms {
		if done[i] {
			continue
		}
		group := []*node{t}
		for _, k := range j.alike(i, terms, byFactor, done) {
			done[k] = true
			group = append(group, terms[k])
		}
		if len(group) > 1 {
			t = j.factored(group, j.common(group))
		}
		out = append(out, t)
	}
	return out
}

// alike are the places of the terms after i that have a factor of term i, and are in no
// group.
func (j chain) alike(i int, terms []*node, byFactor map[uint64][]int, done []bool) []int {
	for _, f := range j.factors(terms[i]) {
		places := byFactor[f.hash]
		if !slices.Contains(places, i) {
			continue
		}
		places = slices.DeleteFunc(slices.Clone(places), func(k int) bool {
			return k <= i || done[k] || !slices.ContainsFunc(j.factors(terms[k]), func(g *node) bool { return equal(f, g) })
		})
		if len(places) > 0 {
			return places
		}
	}
	return nil
}
