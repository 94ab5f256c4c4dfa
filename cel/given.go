package cel

// Knowing is v where c holds and is no error: what c tells to be there is read, and not asked
// for.
//
//	c: has(object.spec.a)               v: object.spec.?a.orValue([])      object.spec.a
//	c: object.?spec.?a.hasValue()       v: object.?spec.?b.orValue('')     object.spec.?b.orValue('')
//	c: size(o.?l.orValue([])) > 0       v: has(o.l) && f                   f
//
// Where c does not hold it may be anything.
func (v Value) Knowing(c Bool) Value {
	p := present{nodeSet{}}
	p.learn(c.n, true)
	if len(p.nodeSet) == 0 {
		return v
	}
	return v.Rewrite(p.read)
}

// present are selections of which it is known that something is there.
type present struct{ nodeSet }

// learn notes what is there where n has a value.
func (p present) learn(n *node, value bool) {
	switch {
	case n.op == opNot:
		p.learn(n.args[0], !value)
	case n.op == opAnd && value, n.op == opOr && !value:
		for _, a := range n.args {
			p.learn(a, value)
		}
	case n.op == opAnd || n.op == opOr:
	case n.op == opCond && (n.args[1].isLit(!value) || n.args[1].isFault()):
		p.learn(n.args[0], false)
		p.learn(n.args[2], value)
	case n.op == opCond && (n.args[2].isLit(!value) || n.args[2].isFault()):
		p.learn(n.args[0], true)
		p.learn(n.args[1], value)
	case n.op == opHas:
		p.evaluated(n)
		if value {
			p.found(Value{n.args[0]}.Field(n.name).n)
		}
	case n.function() == FuncHasValue && len(n.args) == 1:
		p.evaluated(n)
		if value {
			p.found(n.args[0].selected().n)
		}
	default:
		p.evaluated(n)
		if of := n.defaulted(value); of != nil {
			p.found(of.selected().n)
		}
	}
}

// isFault tells of a comparison with what is never there, which is an error: dyn({}).key == true.
func (n *node) isFault() bool {
	if n.operator() != Equals || n.args[0].op != opSelect {
		return false
	}
	of := n.args[0].args[0].plain()
	return of.op == opMap && len(of.args) == 0
}

// defaulted is the optional value that is there where n, which has a value, would have the
// other one if its default stood for it; nil for none.
func (n *node) defaulted(value bool) *node {
	n, value = unnegated(n, value)
	switch {
	case n.macro() == MacroExists && value && n.args[0].isOrValue() && n.args[0].args[1].isEmptyList():
		return n.args[0].args[0]
	case n.op != opBinary:
		return nil
	}
	x, y := n.args[0], n.args[1]
	switch n.operator() {
	case Equals:
		if x.isOrValue() && x.args[1].isLiteral() && y.isLiteral() && equal(x.args[1], y) != value {
			return x.args[0]
		}
	case Greater, GreaterEqual:
		least := int64(0)
		if n.operator() == GreaterEqual {
			least = 1
		}
		if value && x.function() == FuncSize && len(x.args) == 1 && x.args[0].isOrValue() && x.args[0].args[1].isEmptyList() && y.op == opInt && y.lit.(int64) >= least {
			return x.args[0].args[0]
		}
	}
	return nil
}

// found notes a selection, and all that it is below.
func (p present) found(n *node) {
	if (n.op == opSelect || n.op == opIndex && n.args[1].op == opString) && !p.has(n) {
		p.add(n)
		p.found(n.args[0])
	}
}

// evaluated notes the selections that were no error when n was none.
func (p present) evaluated(n *node) {
	if n.op == opSelect || n.op == opIndex {
		p.found(n)
	}
	for _, a := range n.always() {
		p.evaluated(a)
	}
}

// read is a part without questions of which the answer is known.
func (p present) read(v Value) Value {
	n := v.n
	switch {
	case n.op == opHas && p.has(Value{n.args[0]}.Field(n.name).n):
		return True().Value
	case n.op != opMember || !n.isOrValue() && n.function() != FuncHasValue:
		return v
	}
	chain := p.plainer(n.args[0])
	switch {
	case equal(chain, n.args[0]):
		return v
	case chain.op == opOpt || chain.op == opOptIdx:
		args := append([]*node{chain}, n.args[1:]...)
		return Value{n.with(args)}
	case n.function() == FuncHasValue:
		return True().Value
	}
	return Value{chain}
}

// plainer is a chain of optional selections in which those that are known to be there are none.
func (p present) plainer(n *node) *node {
	if n.op != opOpt && n.op != opOptIdx {
		return n
	}
	args := append([]*node{p.plainer(n.args[0])}, n.args[1:]...)
	out := n.with(args)
	if known := out.selected(); args[0].op != opOpt && args[0].op != opOptIdx && p.has(known.n) {
		return known.n
	}
	return out
}
