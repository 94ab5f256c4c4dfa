package cel

// HoistLoops replaces the loops inside of a loop's body that do not depend on its
// variable by what name gives for them: they say the same of every element.
func (v Value) HoistLoops(name func(Value) Value) Value {
	return Value{hoist(v.n, nil, name)}
}

func hoist(n *node, bound []string, name func(Value) Value) *node {
	if len(bound) > 0 && n.op == opMacro && !dependsOn(Value{n}, bound) {
		return name(Value{n}).n
	}
	if len(n.args) == 0 {
		return n
	}
	args := make([]*node, len(n.args))
	for i, a := range n.args {
		inner := bound
		if n.op == opMacro && i > 0 {
			inner = append(bound[:len(bound):len(bound)], n.vars...)
		}
		args[i] = hoist(a, inner, name)
	}
	return n.with(args)
}

func dependsOn(v Value, names []string) bool {
	for _, free := range v.Idents() {
		for _, name := range names {
			if free == name {
				return true
			}
		}
	}
	return false
}
