package cel

import "slices"

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
		return n.isTest() && n.name != "filter"
	case opMember:
		switch n.name {
		case "startsWith", "endsWith", "matches", "contains", "hasValue":
			return true
		}
	case opCall:
		switch n.name {
		case "isQuantity", "isIP", "isCIDR", "isURL", "isSemver", "bool",
			"sets.contains", "sets.equivalent", "sets.intersects":
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
		return n.name == "size" || n.name == "int"
	case opMember:
		return n.name == "size"
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
	return n.isBool() && m.isBool()
}

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
		switch n.name {
		case "==", "!=":
			return s.allTotal(n.args)
		case "in":
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

// rests tells that if n evaluates to value, a field of p was selected without
// error; so has() of a field of p is no error either.
func (n *node) rests(p *node, value bool) bool {
	switch n.op {
	case opAnd, opOr:
		// the value that one term is enough for says nothing of the others
		if (n.op == opAnd) == value {
			return slices.ContainsFunc(n.args, func(a *node) bool { return a.rests(p, value) })
		}
		return !slices.ContainsFunc(n.args, func(a *node) bool { return !a.rests(p, value) })
	case opNot:
		return n.args[0].rests(p, !value)
	case opCond:
		return n.args[0].selects(p) || n.args[1].rests(p, value) && n.args[2].rests(p, value)
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
		if n.name == "or" || n.name == "orValue" { // evaluate their argument when they must
			return n.args[0].selects(p)
		}
	case opAnd, opOr, opMap, opStruct, opMaybe:
		return false
	}
	return slices.ContainsFunc(n.args, func(a *node) bool { return a.selects(p) })
}
