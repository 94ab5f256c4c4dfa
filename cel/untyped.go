package cel

import "slices"

// WithoutDyn is v without dyn() around values that no type checker knows the type of: those
// of these variables, of what is in them, and of the elements of lists of them.
//
//	dyn(pod.spec.?initContainers.orValue([]))    pod.spec.?initContainers.orValue([])
func (v Value) WithoutDyn(variables ...string) Value {
	if v.IsZero() || len(variables) == 0 {
		return v
	}
	return Value{v.n.withoutDyn(variables)}
}

func (n *node) withoutDyn(untyped []string) *node {
	if n.op == opCall && n.function() == FuncDyn && n.args[0].isUntyped(untyped) {
		return n.args[0].withoutDyn(untyped)
	}
	return n.each(func(i int, a *node) *node {
		if n.binds(i) {
			return a.withoutDyn(n.untypedInside(untyped))
		}
		return a.withoutDyn(untyped)
	})
}

// untypedInside are the variables without a type in a macro: its own are, where it goes
// through what has none.
func (n *node) untypedInside(untyped []string) []string {
	out := slices.DeleteFunc(slices.Clone(untyped), func(name string) bool { return slices.Contains(n.vars, name) })
	if n.args[0].isUntyped(untyped) {
		out = append(out, n.vars[len(n.vars)-1])
	}
	return out
}

// isUntyped tells of a place in a variable without a type, and of lists put together of such.
func (n *node) isUntyped(untyped []string) bool {
	switch n.op {
	case opIdent:
		return slices.Contains(untyped, n.name)
	case opSelect, opOpt, opIndex, opOptIdx:
		return n.args[0].isUntyped(untyped)
	case opMacro:
		return n.macro() == MacroFilter && n.args[0].isUntyped(untyped)
	case opBinary:
		return n.operator() == Plus && n.args[0].isUntyped(untyped) && n.args[1].isUntyped(untyped)
	case opCall:
		return n.function() == FuncDyn && n.args[0].isUntyped(untyped)
	}
	return n.emptyIfMissing() != nil && n.args[0].isUntyped(untyped)
}
