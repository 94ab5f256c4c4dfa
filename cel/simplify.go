package cel

import "slices"

// Simplify is a shorter expression with the outcome of v on every input: the
// same value, or an error where v is an error. It may be another error.
//
// && and || take an error for a third truth value, as in Kleene's logic: what
// the other operand decides, an error does not change. The laws of lattices hold
// there, and with them De Morgan's, absorption and distribution. That a || !a is
// true does not: it is an error when a is. Rules that rest on it ask whether a
// can err at all.
func Simplify(v Value) Value {
	if v.IsZero() {
		return v
	}
	return Value{newSimplifier(v).whole(v.n)}
}

// Simplify is Simplify for a boolean.
func (b Bool) Simplify() Bool { return Simplify(b.Value).AsBool() }

// SimplifyIn is Simplify where something is known of what b reads: what is never an
// error there may be put in another order.
func (b Bool) SimplifyIn(around Surroundings) Bool {
	s := newSimplifier(b.Value)
	if s.unbound {
		s.around = &typer{guardContext: newGuard(around), strict: true}
	}
	return Bool{Value{s.whole(b.n)}}
}

// whole simplifies n until nothing of it gets shorter: what became of one part may be
// what is known where another stands.
func (s simplifier) whole(n *node) *node {
	for {
		m := s.node(n, false)
		if equal(m, n) {
			return n
		}
		n = m // which is smaller, or nests less
	}
}

type simplifier struct {
	// unbound: the names object, oldObject and so on stand for what the API server
	// binds to them, map and list for types, and not for a macro's variable.
	unbound bool
	known   *facts // where the part stands that is simplified
	around  *typer // what is known there of values; nil for nothing
	*simplifyCache
}

func newSimplifier(v Value) simplifier {
	rebinds := v.n.some(func(n *node) bool {
		return n.op == opMacro && slices.ContainsFunc(n.vars, func(x string) bool {
			return isRoot(x) || x == "variables" || kindNamed(x) != Unknown
		})
	})
	return simplifier{unbound: !rebinds, simplifyCache: &simplifyCache{
		totals: map[standing]bool{}, outs: map[wanted]*node{}, learned: map[lesson]*facts{}, inside: map[standing]*typer{},
	}}
}

// isRoot tells that name is a variable of the API server that is an object or null.
func isRoot(name string) bool {
	switch name {
	case "object", "oldObject", "params", "request", "namespaceObject":
		return true
	}
	return false
}

// shorter is what node makes of n.
func (s simplifier) shorter(n *node, boolean bool) *node {
	if value, ok := s.known.of(n); ok && (boolean || n.isBool()) {
		return Lit(value).n
	}
	n = n.with(s.args(n, boolean))
	m := s.step(n, boolean)
	if equal(m, n) {
		return n
	}
	return s.node(m, boolean) // ends, since every step makes n smaller
}

// args are the parts of n, each simplified where it stands.
func (s simplifier) args(n *node, boolean bool) []*node {
	args := make([]*node, len(n.args))
	at := s
	for i, a := range n.args {
		switch {
		case n.op == opCond && i > 0:
			at.known = s.learn(n.args[0], i == 1)
			at.known = at.learn(args[0], i == 1)
		case n.op == opMacro && i == 1:
			at.known = s.known.without(n.vars)
			at.around = remember(s.inside, standing{n, s.known, s.around}, func() *typer { return s.around.beneath(n, args[0]) })
		}
		args[i] = at.node(a, n.wantsBool(i, boolean))
		if (n.op == opAnd || n.op == opOr) && args[i].isBool() && at.isTotal(args[i]) {
			at.known = at.learn(args[i], n.op == opAnd)
		}
	}
	return args
}

// wantsBool tells that n, where boolean says that n itself must be one, has an
// error for args[i] that is not a boolean.
func (n *node) wantsBool(i int, boolean bool) bool {
	switch n.op {
	case opAnd, opOr, opNot:
		return true
	case opCond:
		return i == 0 || boolean
	case opMacro:
		return i == 1 && (n.isTest() || len(n.args) == 3)
	}
	return false
}

// isTest tells that n is a macro whose body is a condition.
func (n *node) isTest() bool {
	switch n.macro() {
	case MacroAll, MacroExists, MacroExistsOne, MacroExistsOneNew, MacroFilter:
		return n.op == opMacro
	}
	return false
}

func (s simplifier) step(n *node, boolean bool) *node {
	switch n.op {
	case opNot:
		return s.negated(n.args[0], boolean)
	case opAnd, opOr:
		return s.andOr(n, boolean)
	case opCond:
		return s.cond(n, boolean)
	case opBinary:
		return s.binary(n)
	case opMember, opCall:
		return foldCall(n)
	}
	return n
}

func not(n *node) *node { return newNode(node{op: opNot, args: []*node{n}}) }

// negated is !n, with the negation moved inside where that is shorter.
func (s simplifier) negated(n *node, boolean bool) *node {
	m := s.dual(n, boolean)
	if m == nil || m.size > n.size {
		return not(n)
	}
	return m
}

// dual is !n with the negation moved inside, or nil.
func (s simplifier) dual(n *node, boolean bool) *node {
	switch n.op {
	case opBool:
		return Lit(!n.lit.(bool)).n
	case opNot:
		if boolean || n.args[0].isBool() {
			return n.args[0]
		}
	case opBinary:
		operator, ok := n.operator().inverse()
		if !ok && n.args[0].isInt() && n.args[1].isInt() {
			operator, ok = n.operator().opposite()
		}
		if ok {
			return newNode(node{op: opBinary, name: string(operator), args: n.args})
		}
	case opAnd, opOr:
		m := node{op: n.op.dual(), args: make([]*node, len(n.args))}
		for i, a := range n.args {
			m.args[i] = s.negated(a, true)
		}
		return newNode(m)
	case opMacro:
		if dual, ok := n.macro().dual(); ok {
			m := *n
			m.name = string(dual)
			m.args = []*node{n.args[0], s.negated(n.args[1], true)}
			return newNode(m)
		}
	case opCond:
		return newNode(node{op: opCond, args: []*node{
			n.args[0], s.negated(n.args[1], boolean), s.negated(n.args[2], boolean),
		}})
	}
	return nil
}

// cond simplifies a ternary. It is strict in its condition: c ? a : false is not
// c && a, which is false when c is an error and a is false.
func (s simplifier) cond(n *node, boolean bool) *node {
	c, a, b := n.args[0], n.args[1], n.args[2]
	switch {
	case c.isLit(true) && (boolean || a.typedLike(b)):
		return a
	case c.isLit(false) && (boolean || b.typedLike(a)):
		return b
	case c.op == opNot:
		return newNode(node{op: opCond, args: []*node{c.args[0], b, a}})
	case a.isLit(true) && b.isLit(false) && (boolean || c.isBool()):
		return c
	case a.isLit(false) && b.isLit(true):
		return s.negated(c, boolean)
	case !s.isTotal(c) || !c.isBool():
		return n
	case equal(a, b):
		return a
	case b.isLit(false) && (boolean || a.isBool()):
		return newNode(node{op: opAnd, args: []*node{c, a}})
	case a.isLit(true) && (boolean || b.isBool()):
		return newNode(node{op: opOr, args: []*node{c, b}})
	case b.isLit(true) && (boolean || a.isBool()):
		return newNode(node{op: opOr, args: []*node{s.negated(c, true), a}})
	case a.isLit(false) && (boolean || b.isBool()):
		return newNode(node{op: opAnd, args: []*node{s.negated(c, true), b}})
	}
	return n
}

// asksNever tells of a comparison with null of what is never null, if it is not an error.
func (n *node) asksNever() bool {
	o := n.operator()
	return (o == Equals || o == Differs) && n.args[1].op == opNull && n.args[0].plain().operator() == Plus
}

func (n *node) isLit(b bool) bool { return n.op == opBool && n.lit.(bool) == b }

// A simplifyCache keeps what a simplification has found out: what is around a part comes by it
// again, and so does each pass.
type simplifyCache struct {
	totals  map[standing]bool
	outs    map[wanted]*node
	learned map[lesson]*facts
	inside  map[standing]*typer // of macros
}

// A standing is a part where something is known.
type standing struct {
	n      *node
	known  *facts
	around *typer
}

// A wanted is a part to be simplified where it stands, perhaps where what is not a boolean
// is an error.
type wanted struct {
	standing
	boolean bool
}

// A lesson is that n has a value, besides what was known before.
type lesson struct {
	before *facts
	n      *node
	value  bool
}

// isTotal tells that n is not an error, whatever the input.
func (s simplifier) isTotal(n *node) bool {
	return remember(s.totals, standing{n, s.known, s.around}, func() bool {
		if total := s.isTotalAlone(n); total || s.around == nil {
			return total
		}
		around := *s.around
		around.known = s.known
		_, total := around.of(n)
		return total
	})
}

// node simplifies n from the inside out. boolean tells that where n stands, what
// is not a boolean is an error: there, x && true is x.
func (s simplifier) node(n *node, boolean bool) *node {
	if len(n.args) == 0 {
		return s.shorter(n, boolean)
	}
	return remember(s.outs, wanted{standing{n, s.known, s.around}, boolean}, func() *node { return s.shorter(n, boolean) })
}

// learn is what is known where n has a value, too: the same facts each time, so that
// what was found out where they hold is found again.
func (s simplifier) learn(n *node, value bool) *facts {
	return remember(s.learned, lesson{s.known, n, value}, func() *facts { return s.known.and(n, value) })
}

// remember is what was found out, or is found out now.
func remember[K comparable, V any](kept map[K]V, key K, find func() V) V {
	out, done := kept[key]
	if !done {
		out = find()
		kept[key] = out
	}
	return out
}
