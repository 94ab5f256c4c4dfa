package cel

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
