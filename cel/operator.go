package cel

// An Operator stands between two operands.
type Operator string

// The operators.
const (
	Equals       Operator = "=="
	Differs      Operator = "!="
	Less         Operator = "<"
	LessEqual    Operator = "<="
	Greater      Operator = ">"
	GreaterEqual Operator = ">="
	In           Operator = "in"
	Plus         Operator = "+"
	Minus        Operator = "-"
	Times        Operator = "*"
	Over         Operator = "/"
	Modulo       Operator = "%"

	noOperator Operator = ""
)

// operator is the operator of n; none where n has not one between two operands.
func (n *node) operator() Operator {
	if n.op != opBinary {
		return noOperator
	}
	return Operator(n.name)
}

// inverse is the operator whose result is the negation of o's for every pair of
// operands. The orderings have none: what is not a number has no order.
func (o Operator) inverse() (Operator, bool) {
	switch o {
	case Equals:
		return Differs, true
	case Differs:
		return Equals, true
	}
	return noOperator, false
}

// opposite is the inverse of an ordering of integers.
func (o Operator) opposite() (Operator, bool) {
	switch o {
	case Less:
		return GreaterEqual, true
	case LessEqual:
		return Greater, true
	case Greater:
		return LessEqual, true
	case GreaterEqual:
		return Less, true
	}
	return noOperator, false
}

// holds tells whether the sign of a comparison satisfies o, which compares.
func (o Operator) holds(sign int) bool {
	switch o {
	case Equals:
		return sign == 0
	case Differs:
		return sign != 0
	case Less:
		return sign < 0
	case LessEqual:
		return sign <= 0
	case Greater:
		return sign > 0
	}
	return sign >= 0
}
