package cel

import "slices"

// What can be told of an expression's errors from its form alone.

// isTotal tells that n is no error, whatever the input.
func (s simplifier) isTotal(n *node) bool {
	switch n.op {
	case opIdent, opNull, opBool, opInt, opUint, opDouble, opString, opBytes:
		return true
	case opHas: // has(null.x) is false
		return s.rootsAreObjects && n.args[0].op == opIdent && isRoot(n.args[0].name)
	case opAnd, opOr, opNot:
		return s.allTotal(n.args) && !slices.ContainsFunc(n.args, func(a *node) bool { return !a.isBool() })
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

// selectedIf tells that if n evaluates to value, a field of p was selected without
// error; so has() of a field of p is no error either.
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
	switch n.op {
	case opSelect, opHas:
		return equal(n.args[0], p) || n.args[0].selects(p)
	case opMacro, opOpt, opCond:
		return n.args[0].selects(p)
	case opMember:
		if n.function() == FuncOr || n.function() == FuncOrValue { // evaluate their argument when they must
			return n.args[0].selects(p)
		}
	case opAnd, opOr, opMap, opStruct, opMaybe:
		return false
	}
	return slices.ContainsFunc(n.args, func(a *node) bool { return a.selects(p) })
}
