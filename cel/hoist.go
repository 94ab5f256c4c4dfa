package cel

import "slices"

// HoistLoops replaces the loops inside of a loop's body that do not depend on its
// variable by what name gives for them: they say the same of every element.
func (v Value) HoistLoops(name func(Value) Value) Value {
	return Value{hoist(v.n, nil, name)}
}

func hoist(n *node, bound []string, name func(Value) Value) *node {
	if len(bound) > 0 && n.op == opMacro && !dependsOn(Value{n}, bound) {
		return name(Value{n}).n
	}
	return n.each(func(i int, a *node) *node {
		if n.binds(i) {
			return hoist(a, append(slices.Clip(bound), n.vars...), name)
		}
		return hoist(a, bound, name)
	})
}

func dependsOn(v Value, names []string) bool {
	return slices.ContainsFunc(v.Idents(), func(free string) bool { return slices.Contains(names, free) })
}
