package cel

// Denying is b for a place where an error counts as false: it is true exactly where b is, and
// else it is false, or an error. What told an error from false is left out:
//
//	has(o.a) ? o.a > 1 : dyn({}).missing == true    has(o.a) && o.a > 1
//	o.a > 1 ? true : x                              has(o.a) && (o.a > 1 || x)
//	dyn({}).missing != true                         false
//
// What b reads is known the same in each of the surroundings; where there are none, less is
// left out.
func (b Bool) Denying(around ...Surroundings) Bool {
	return Bool{Value{denying{around}.of(b.n, true)}}
}

type denying struct{ around []Surroundings }

// of has the wanted truth value exactly where n has it, and else the other one, or it is an
// error.
func (d denying) of(n *node, want bool) *node {
	switch n.op {
	case opAnd, opOr:
		return andOr(n.op, d.each(n.args, want)).n
	case opNot:
		return Not(Bool{Value{d.of(n.args[0], !want)}}).n
	case opCond:
		return d.choice(n, want)
	case opMacro:
		if n.isQuantifier() && len(n.vars) == 1 {
			return n.with([]*node{n.args[0], denying{}.of(n.args[1], want)})
		}
	}
	if (Value{n}).IsFault() {
		return Lit(!want).n
	}
	return n
}

func (d denying) each(ns []*node, want bool) []Bool {
	out := bools(ns)
	for i := range out {
		out[i] = Bool{Value{d.of(ns[i], want)}}
	}
	return out
}

// choice is of for a ternary. It says what makes n what is wanted, or for the other truth value
// what keeps n from it: the two differ by negations only.
func (d denying) choice(n *node, want bool) *node {
	branches := d.each(n.args[1:], want)
	c, yes, no := Bool{Value{n.args[0]}}, branches[0], branches[1]
	also := func(asked, then Bool) *node { // then, where what is asked holds
		if then = then.Given(asked); want {
			return And(asked, then).n
		}
		return Or(Not(asked), then).n
	}
	is := func(b Bool, value bool) bool { known, ok := b.Const(); return ok && known == value }
	switch {
	case is(no, !want):
		return also(Bool{Value{d.of(c.n, true)}}, yes)
	case is(yes, !want):
		return also(Not(Bool{Value{d.of(c.n, false)}}), no)
	case c.n.op == opCond && (Value{c.n.args[2]}).IsFault():
		return also(Bool{Value{c.n.args[0]}}, Bool{Value{d.choice(n.with([]*node{c.n.args[1], yes.n, no.n}), want)}})
	case is(yes, want) || is(no, want):
		asked, c, ok := d.readable(c)
		if !ok {
			break
		}
		if is(no, want) {
			c, no = Not(c), yes
		}
		if want {
			return also(asked, Or(c, no))
		}
		return also(asked, And(Not(c), no))
	}
	return CondBool(c, yes, no).n
}

// readable asks for what b reads, and is b where that is there. It is not ok where b may be an
// error even so.
func (d denying) readable(b Bool) (asked, given Bool, ok bool) {
	if len(d.around) == 0 {
		return True(), b, b.Boolean() && newSimplifier(b.Value).isTotal(b.n)
	}
	asked = b.Present(d.around[0]).Simplify()
	given = b.Given(asked)
	for _, s := range d.around {
		if !(And(asked, given)).IsTotal(s) || !Equal(asked.Value, b.Present(s).Simplify().Value) {
			return asked, given, false
		}
	}
	return asked, given, given.Boolean()
}
