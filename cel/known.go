package cel

import "slices"

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
	if slices.ContainsFunc(names, func(x string) bool { return Value{f.n}.Count(x) > 0 }) {
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

// isMap tells that p is an object or a map.
func (f *facts) isMap(p *node) bool { return f.kindOf(p) == MapKind }

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
