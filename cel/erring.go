package cel

import "slices"

// What can be told of an expression's errors from its form alone.

// isTotalAlone is isTotal as far as the form of n tells.
func (s simplifier) isTotalAlone(n *node) bool {
	switch n.op {
	case opIdent, opNull, opBool, opInt, opUint, opDouble, opString, opBytes:
		return true
	case opHas: // has(null.x) is false
		of := n.args[0]
		return s.unbound && (of.op == opIdent && isRoot(of.name) || s.known.kindOf(of) == MapKind && s.isTotal(of)) ||
			s.known.selected(of)
	case opSelect:
		return s.known.hasField(n.args[0], n.name)
	case opAnd, opOr:
		return s.isTotalChain(n)
	case opNot:
		return n.args[0].isBool() && s.isTotal(n.args[0])
	case opCall:
		return (n.function() == FuncType || n.function() == FuncDyn) && s.allTotal(n.args)
	case opBinary:
		switch n.operator() {
		case Equals, Differs:
			return s.allTotal(n.args)
		case In:
			return n.args[1].op == opList && s.allTotal(n.args)
		}
	case opList:
		return s.allTotal(n.args)
	}
	return false
}

func (s simplifier) allTotal(ns []*node) bool {
	return !slices.ContainsFunc(ns, func(n *node) bool { return !s.isTotal(n) })
}

// isTotalChain tells that each term of n has a truth value, by what those before it
// say.
func (s simplifier) isTotalChain(n *node) bool {
	for _, a := range n.args {
		if !a.isBool() || !s.isTotal(a) {
			return false
		}
		s.known = s.learn(a, n.op == opAnd)
	}
	return true
}

// selectedIf tells that if n evaluates to value, a field of p was selected without
// error; so has() of a field of p is not an error either.
func (n *node) selectedIf(p *node, value bool) bool {
	switch n.op {
	case opAnd, opOr:
		// the value that one term is enough for says nothing of the others
		if (n.op == opAnd) == value {
			return slices.ContainsFunc(n.args, func(a *node) bool { return a.selectedIf(p, value) })
		}
		return !slices.ContainsFunc(n.args, func(a *node) bool { return !a.selectedIf(p, value) })
	case opNot:
		return n.args[0].selectedIf(p, !value)
	case opCond:
		return n.args[0].selects(p) || n.args[1].selectedIf(p, value) && n.args[2].selectedIf(p, value)
	}
	return n.selects(p)
}

// selects tells that n is an error if a field of p cannot be selected.
func (n *node) selects(p *node) bool {
	switch {
	case (n.op == opSelect || n.op == opHas) && equal(n.args[0], p):
		return true
	case n.op == opMap || n.op == opStruct:
		return false
	}
	return slices.ContainsFunc(n.always(), func(a *node) bool { return a.selects(p) })
}

// What can be told of an expression's type from its form alone.

// isBool tells that n is a boolean or an error, whatever the input.
func (n *node) isBool() bool {
	switch n.op {
	case opBool, opHas, opAnd, opOr, opNot:
		return true
	case opBinary:
		return n.prec() == precRelation
	case opCond:
		return n.args[1].isBool() && n.args[2].isBool()
	case opMacro:
		return n.isTest() && n.macro() != MacroFilter
	case opMember:
		switch n.function() {
		case FuncStartsWith, FuncEndsWith, FuncMatches, FuncContains, FuncHasValue, FuncIsLessThan, FuncIsGreaterThan, FuncAllowed:
			return true
		}
	case opCall:
		switch n.function() {
		case FuncIsQuantity, FuncIsIP, FuncIsCIDR, FuncIsURL, FuncIsSemver, FuncBool,
			FuncSetsContains, FuncSetsEquivalent, FuncSetsIntersects:
			return true
		}
	}
	return false
}

// isInt tells that n is an integer or an error, whatever the input.
func (n *node) isInt() bool {
	switch n.op {
	case opInt:
		return true
	case opCall:
		return n.function() == FuncSize || n.function() == FuncInt
	case opMember:
		return n.function() == FuncSize
	case opBinary:
		o := n.operator()
		return (o == Plus || o == Minus || o == Times) && n.args[0].isInt() && n.args[1].isInt()
	}
	return false
}

// typedLike tells that n can stand for a ternary with the branches n and m as far
// as the type checker goes: where m is dynamic the ternary is, and n may be too
// narrow a type for what is around it.
func (n *node) typedLike(m *node) bool {
	switch n.op {
	case opIdent, opSelect, opIndex:
		return true
	case opInt, opDouble, opString, opNull:
		return n.op == m.op
	}
	return n.isBool() && m.isBool() || n.isInt() && m.isInt()
}
