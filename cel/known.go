package cel

// What is known where a part of an expression stands: of a ternary, one branch is
// evaluated only where the condition holds, and what stands beside a term of a
// conjunction only counts where the term does.

// facts are conditions with the truth values that they have, the latest first. nil
// knows nothing.
type facts struct {
	n     *node
	value bool
	older *facts
}

// and is f with the fact that n has a value, and with what follows from that.
func (f *facts) and(n *node, value bool) *facts {
	switch {
	case n.op == opBool:
		return f
	case n.op == opNot:
		return f.and(n.args[0], !value)
	case n.op == opAnd && value, n.op == opOr && !value:
		for _, a := range n.args {
			f = f.and(a, value)
		}
		return f
	case n.op == opCond && n.args[1].isLit(!value):
		f = f.and(n.args[0], false).and(n.args[2], value)
	case n.op == opCond && n.args[2].isLit(!value):
		f = f.and(n.args[0], true).and(n.args[1], value)
	}
	n, value = unnegated(n, value)
	return &facts{n, value, f}
}

// unnegated is n without a negation, and the value that this has where n has the given one.
func unnegated(n *node, value bool) (*node, bool) {
	if n.operator() == Differs {
		return newNode(node{op: opBinary, name: string(Equals), args: n.args}), !value
	}
	return n, value
}

// of is the value of n, where that is known.
func (f *facts) of(n *node) (value, ok bool) {
	if f == nil || n.isLiteral() {
		return false, false
	}
	n, flipped := unnegated(n, false)
	for ; f != nil; f = f.older {
		if equal(f.n, n) {
			return f.value != flipped, true
		}
	}
	return false, false
}

// hasField tells that p is known to have a field of the name.
func (f *facts) hasField(p *node, name string) bool {
	for ; f != nil; f = f.older {
		if f.n.op == opHas && f.n.name == name && equal(f.n.args[0], p) {
			return f.value
		}
	}
	return false
}

// isNotNull tells that n is known not to be null.
func (f *facts) isNotNull(n *node) bool {
	isNull, known := f.of(Value{n}.Eq(Null()).n)
	return known && !isNull
}

// without are the facts that speak of none of some variables.
func (f *facts) without(names []string) *facts {
	if f == nil {
		return nil
	}
	older := f.older.without(names)
	if f.n.readsAny(names) {
		return older
	}
	if older == f.older {
		return f
	}
	return &facts{f.n, f.value, older}
}

// selected tells that a field of p was selected without error: p is an object, a map
// or what has() is false of.
func (f *facts) selected(p *node) bool {
	for ; f != nil; f = f.older {
		if f.n.selectedIf(p, f.value) {
			return true
		}
	}
	return false
}

// kindOf is the kind that n is known to be of.
func (f *facts) kindOf(n *node) Kind {
	for ; f != nil; f = f.older {
		switch {
		case !f.value:
		case f.n.op == opHas && equal(f.n.args[0], n):
			return MapKind
		case f.n.operator() == Equals && f.n.args[0].function() == FuncType && f.n.args[1].op == opIdent:
			if equal(f.n.args[0].args[0].plain(), n.plain()) {
				return kindNamed(f.n.args[1].name)
			}
		}
	}
	return Unknown
}

// plain is n without dyn() around it.
func (n *node) plain() *node {
	for n.op == opCall && n.function() == FuncDyn && len(n.args) == 1 {
		n = n.args[0]
	}
	return n
}

// kindNamed is the kind of the values that have a type.
func kindNamed(name string) Kind {
	switch name {
	case "bool":
		return BoolKind
	case "int", "uint", "double":
		return NumberKind
	case "string":
		return StringKind
	case "list":
		return ListKind
	case "map":
		return MapKind
	}
	return Unknown
}

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
	case n.macro() == MacroExists && value:
		return n.args[0].emptyIfMissing()
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
		if of, ok := x.sized(); ok && value && y.op == opInt && y.lit.(int64) >= least {
			return of.emptyIfMissing()
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
