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

// A MacroName is a macro that binds variables for the elements of a list or a map, or
// for what an optional value holds.
type MacroName string

// The macros.
const (
	MacroAll               MacroName = "all"
	MacroExists            MacroName = "exists"
	MacroExistsOne         MacroName = "exists_one"
	MacroExistsOneNew      MacroName = "existsOne" // the same, by the name that newer releases give it
	MacroFilter            MacroName = "filter"
	MacroMap               MacroName = "map"
	MacroSortBy            MacroName = "sortBy"
	MacroOptMap            MacroName = "optMap"
	MacroOptFlatMap        MacroName = "optFlatMap"
	MacroTransformList     MacroName = "transformList"
	MacroTransformMap      MacroName = "transformMap"
	MacroTransformMapEntry MacroName = "transformMapEntry"

	noMacro MacroName = ""
)

// macro is the macro that n calls; none where it calls none.
func (n *node) macro() MacroName {
	if n.op != opMacro {
		return noMacro
	}
	return MacroName(n.name)
}

// dual is the quantifier that asks the negated question of the negated body.
func (m MacroName) dual() (MacroName, bool) {
	switch m {
	case MacroAll:
		return MacroExists, true
	case MacroExists:
		return MacroAll, true
	}
	return noMacro, false
}

// variables is how many of a macro's args arguments name variables.
func (m MacroName) variables(args int) (vars int, isMacro bool) {
	switch m {
	case MacroAll, MacroExists, MacroExistsOne, MacroExistsOneNew:
		return args - 1, args == 2 || args == 3
	case MacroMap:
		return 1, args == 2 || args == 3
	case MacroFilter, MacroOptMap, MacroOptFlatMap, MacroSortBy:
		return 1, args == 2
	case MacroTransformList, MacroTransformMap, MacroTransformMapEntry:
		return 2, args == 3 || args == 4
	}
	return 0, false
}

// Macro is list.name(x, body), or list.name(x, condition, body). x must not be
// bound around the bodies already; a Scope hands out such variables.
func (v Value) Macro(name MacroName, x Value, bodies ...Value) Value {
	return v.macro(name, []string{x.n.name}, bodies)
}

// IndexedMacro is the form with a variable for the index too: list.name(i, x, bodies).
func (v Value) IndexedMacro(name MacroName, i, x Value, bodies ...Value) Value {
	return v.macro(name, []string{i.n.name, x.n.name}, bodies)
}

func (v Value) macro(name MacroName, vars []string, bodies []Value) Value {
	args := []*node{v.n}
	for _, b := range bodies {
		args = append(args, b.n)
	}
	return Value{newNode(node{op: opMacro, name: string(name), vars: vars, args: args})}
}

// Loop is the parts of list.all(x, body), if b is that.
func (b Bool) Loop() (list, x Value, body Bool, ok bool) {
	n := b.n
	if n.macro() != MacroAll || len(n.vars) != 1 || len(n.args) != 2 {
		return Value{}, Value{}, Bool{}, false
	}
	return Value{n.args[0]}, Ident(n.vars[0]), Bool{Value{n.args[1]}}, true
}
