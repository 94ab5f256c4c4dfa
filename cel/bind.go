package cel

// AnyOf is the disjunction of terms that read composed variables, in a form that
// has none. A variable that is read once, or that is no longer than its name, is
// put where it is read. One that is read more often, or in a loop, is bound around
// the terms that read it, as [expr].exists(name, ...). There it is evaluated
// whatever the terms ask for, and so it must never be an error; what total does
// not know to be a value is written out wherever it is read.
//
// Definitions come in order of dependence.
func AnyOf(terms []Bool, variables []Definition, total func(Value) bool) Bool {
	if any := Or(terms...); any.n.op == opOr {
		terms = bools(any.n.args)
	}
	for i := len(variables) - 1; i >= 0; i-- {
		terms = without(terms, variables[i], total)
	}
	return Or(terms...)
}

// without is the terms without a variable.
func without(terms []Bool, v Definition, total func(Value) bool) []Bool {
	uses, looped := 0, false
	for _, t := range terms {
		n, in := t.n.readings(v.Name, false)
		uses, looped = uses+n, looped || in
	}
	if uses == 0 {
		return terms
	}
	const short = 10 // nodes: object.spec.?template.?spec is shorter
	whole := total(v.Expr)
	if uses == 1 && !looped || v.Expr.n.size < short && v.Expr.n.isPath1() || !whole {
		return replaced(terms, v.Name, v.Expr)
	}
	scope := &Scope{}
	for _, t := range terms {
		scope.reserveAll([]*node{t.n})
	}
	scope.reserveAll([]*node{v.Expr.n})
	name := scope.Fresh(v.Name)
	var rest, reading []Bool
	for _, t := range terms {
		if n, _ := t.n.readings(v.Name, false); n > 0 {
			reading = append(reading, t)
		} else {
			rest = append(rest, t)
		}
	}
	body := Or(replaced(reading, v.Name, Ident(name))...)
	return append(rest, List(v.Expr).Macro(MacroExists, Ident(name), body.Value).AsBool())
}

func replaced(terms []Bool, name string, w Value) []Bool {
	out := make([]Bool, len(terms))
	for i, t := range terms {
		out[i] = t.SubstituteField("variables", name, w).AsBool()
	}
	return out
}

// readings is how often n reads a composed variable, and whether it does in a loop.
func (n *node) readings(name string, loop bool) (uses int, looped bool) {
	if f, ok := n.field(); ok && f == name && n.args[0].isPath([]string{"variables"}) {
		return 1, loop
	}
	for i, a := range n.args {
		in := loop || n.op == opMacro && i > 0 && !(n.args[0].op == opList && len(n.args[0].args) == 1)
		k, l := a.readings(name, in)
		uses, looped = uses+k, looped || l
	}
	return uses, looped
}

// isPath1 tells of a literal, or of a value that is read by nothing but its path.
func (n *node) isPath1() bool {
	if n.isLiteral() || n.op == opIdent {
		return true
	}
	_, _, ok := Value{n}.OptionalPath()
	return ok
}

// Plain tells of a literal, or of a field that nothing stands in for where it is missing.
func (v Value) Plain() bool {
	_, isPath := v.Path()
	return isPath || v.n.isLiteral()
}
