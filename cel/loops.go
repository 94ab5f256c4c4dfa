package cel

import (
	"cmp"
	"slices"
)

// Fuse makes one quantifier of several that say the same of different lists:
// a.all(x, p) && b.all(x, p) becomes join(a, b).all(x, p), and likewise for
// exists and ||. Only lists for which joinable is true are put together, and
// their order is as they stand.
func (b Bool) Fuse(joinable func(Value) bool, join func([]Value) Value) Bool {
	return b.Rewrite(func(v Value) Value {
		if v.n.op != opAnd && v.n.op != opOr {
			return v
		}
		loops := func(n *node) bool {
			return n.macro() == v.n.op.quantifier() && len(n.vars) == 1 && joinable(Value{n.args[0]})
		}
		var terms []*node
		var lists [][]Value // of each term that is a loop
		for _, n := range v.n.args {
			var list []Value
			if loops(n) {
				list = append(list, Value{n.args[0]})
				says := func(t *node) bool { return loops(t) && t.vars[0] == n.vars[0] && equal(t.args[1], n.args[1]) }
				if i := slices.IndexFunc(terms, says); i >= 0 {
					lists[i] = append(lists[i], list...)
					continue
				}
			}
			terms, lists = append(terms, n), append(lists, list)
		}
		if len(terms) == len(v.n.args) {
			return v
		}
		for i, n := range terms {
			if len(lists[i]) > 1 {
				terms[i] = join(lists[i]).Macro(n.macro(), Ident(n.vars[0]), Value{n.args[1]}).n
			}
		}
		return andOr(v.n.op, bools(terms)).Value
	}).AsBool()
}

// quantifier is the macro that joins what it asks of each element as o joins its terms.
func (o op) quantifier() MacroName {
	switch o {
	case opAnd:
		return MacroAll
	case opOr:
		return MacroExists
	}
	return noMacro
}

// OptionalPath is the fields of a chain of selections, optional or not, that
// begins with an identifier; an orValue at its end is looked through, and
// defaulted tells that there is one.
func (v Value) OptionalPath() (path []string, defaulted, ok bool) {
	n := v.n
	if n.function() == FuncOrValue {
		defaulted, n = true, n.args[0]
	}
	for ; n.op == opSelect || n.op == opOpt; n = n.args[0] {
		path = append([]string{n.name}, path...)
	}
	if n.op != opIdent {
		return nil, false, false
	}
	return append([]string{n.name}, path...), defaulted, true
}

// Boolean tells that CEL knows v to be boolean when nothing is known of the
// request: a selection or an orValue is not.
func (b Bool) Boolean() bool { return b.n.isBool() }

// Rooted is b in a form that CEL knows to be boolean.
func (b Bool) Rooted() Bool {
	if b.Boolean() {
		return b
	}
	return b.Eq(Lit(true).Value)
}

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
	if n.op == opAnd || n.op == opOr {
		n = mergedTerms(n, along)
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
	args := withoutImplied(n.args, opOr)
	if len(args) == 1 {
		return args[0]
	}
	costs := map[*node]int64{}
	for _, a := range args {
		costs[a] = Cost(Value{a}, nil)
	}
	slices.SortStableFunc(args, func(a, b *node) int { return cmp.Compare(costs[a], costs[b]) })
	return n.with(guardsFirst(args))
}

// guardsFirst are the terms of a disjunction, those that ask for a value before those that read
// it.
func guardsFirst(terms []*node) []*node {
	for i := 1; i < len(terms) && len(terms) <= fewTerms; i++ {
		asked := presence{op: opOr}.asked(terms[i])
		if asked == nil || asked.askedFor() == nil {
			continue
		}
		reads := func(t *node) bool { return t.some(func(n *node) bool { return goesTo(asked.askedFor(), n) }) }
		if j := slices.IndexFunc(terms[:i], reads); j >= 0 {
			guard := terms[i]
			terms = slices.Insert(slices.Delete(terms, i, i+1), j, guard)
		}
	}
	return terms
}

// mergedTerms puts the quantifiers among the terms of n together, each where its
// list comes up first.
func mergedTerms(n *node, along func(*node, MacroName) *node) *node {
	quantifier := n.op.quantifier()
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

// AnyOf is the disjunction of terms that read composed variables, in a form that
// has none. A variable that is read once, or that is no longer than its name, is
// put where it is read. One that is read more often, or in a loop, is bound around
// the terms that read it, as [expr].exists(name, ...). There it is evaluated
// whatever the terms ask for, and so it must never be an error; what total does
// not know to be a value is written out wherever it is read.
//
// Definitions come in order of dependence.
func AnyOf(terms []Bool, variables []Definition, total func(Value) bool) Bool {
	if any := Or(terms...); any.n.op == opOr {
		terms = bools(any.n.args)
	}
	for i := len(variables) - 1; i >= 0; i-- {
		terms = without(terms, variables[i], total)
	}
	return Or(terms...)
}

// without is the terms without a variable.
func without(terms []Bool, v Definition, total func(Value) bool) []Bool {
	uses, looped := 0, false
	for _, t := range terms {
		n, in := t.n.readings(v.Name, false)
		uses, looped = uses+n, looped || in
	}
	if uses == 0 {
		return terms
	}
	const short = 10 // nodes: object.spec.?template.?spec is shorter
	whole := total(v.Expr)
	_, _, isPath := v.Expr.OptionalPath()
	if uses == 1 && !looped || v.Expr.n.size < short && (isPath || v.Expr.n.isLiteral()) || !whole {
		return replaced(terms, v.Name, v.Expr)
	}
	scope := &Scope{}
	for _, t := range terms {
		scope.reserveAll([]*node{t.n})
	}
	scope.reserveAll([]*node{v.Expr.n})
	name := scope.Fresh(v.Name)
	var rest, reading []Bool
	for _, t := range terms {
		if n, _ := t.n.readings(v.Name, false); n > 0 {
			reading = append(reading, t)
		} else {
			rest = append(rest, t)
		}
	}
	body := Or(replaced(reading, v.Name, Ident(name))...)
	return append(rest, List(v.Expr).Macro(MacroExists, Ident(name), body.Value).AsBool())
}

func replaced(terms []Bool, name string, w Value) []Bool {
	out := make([]Bool, len(terms))
	for i, t := range terms {
		out[i] = t.SubstituteField("variables", name, w).AsBool()
	}
	return out
}

// readings is how often n reads a composed variable, and whether it does in a loop.
func (n *node) readings(name string, loop bool) (uses int, looped bool) {
	if f, ok := n.field(); ok && f == name && n.args[0].isPath([]string{"variables"}) {
		return 1, loop
	}
	for i, a := range n.args {
		in := loop || n.op == opMacro && i > 0 && !(n.args[0].op == opList && len(n.args[0].args) == 1)
		k, l := a.readings(name, in)
		uses, looped = uses+k, looped || l
	}
	return uses, looped
}

// Plain tells of a literal, or of a field that nothing stands in for where it is missing.
func (v Value) Plain() bool {
	_, isPath := v.Path()
	return isPath || v.n.isLiteral()
}

// ByName is v with one loop through the names of the lists that a sum adds up, where these are
// fields of one place, p, below a variable, and the sum is searched:
//
//	(p.a + p.?b.orValue([])).exists(x, q)    ['a', 'b'].exists(field, p[?field].orValue([]).exists(x, q))
//
// It reads p once. It is for conditions that are never an error.
func (v Value) ByName(variable string) Value {
	return v.Rewrite(func(v Value) Value {
		if !v.n.isQuantifier() || len(v.n.vars) != 1 {
			return v
		}
		place, names := v.n.args[0].summed()
		if place == nil || len(names) < 2 || (Value{place}).Count(variable) != 1 || (Value{v.n.args[1]}).Count(variable) > 0 {
			return v
		}
		scope := &Scope{}
		scope.reserveAll([]*node{v.n})
		field := Ident(scope.Fresh("field"))
		each := v.n.with([]*node{Value{place}.OptIndex(field).OrValue(List()).n, v.n.args[1]})
		return Strings(names...).Macro(v.n.macro(), field, Value{each})
	})
}

// summed is the place of the lists that n adds up, and their names; nil where there is no such
// place.
func (n *node) summed() (place *node, names []string) {
	if n.operator() == Plus {
		left, some := n.args[0].summed()
		right, more := n.args[1].summed()
		if left == nil || right == nil || !equal(left, right) {
			return nil, nil
		}
		return left, append(some, more...)
	}
	of := cmp.Or(n.emptyIfMissing(), n)
	if of.op != opSelect && of.op != opOpt {
		return nil, nil
	}
	return of.args[0], []string{of.name}
}
