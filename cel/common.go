package cel

// Common is the path below a variable that goes first in everything v reads of it, and the
// last name on it; the variable itself where there is no such path.
//
//	pod.spec.a + pod.spec.?b.orValue(0)                    pod.spec
//	pod.?metadata.?labels.?a == pod.?metadata.?labels.?b   pod.?metadata.?labels
//
// Whoever evaluates v evaluates the path, and errs where it is an error.
func (v Value) Common(variable string) (path Value, name string) {
	var steps []*node // from the variable outwards
	first := true
	var visit func(n *node, bound bool)
	visit = func(n *node, bound bool) {
		if read := n.steps(variable); read != nil {
			if !bound && first {
				steps, first = read, false
			} else if !bound {
				steps = samePrefix(steps, read)
			}
			return
		}
		for i, a := range n.args {
			if n.op == opMacro && i == 1 {
				for _, x := range n.vars {
					bound = bound || x == variable
				}
			}
			visit(a, bound)
		}
	}
	visit(v.n, false)
	for len(steps) > 1 {
		last := steps[len(steps)-1]
		if (Reading{Value: Value{last}}).In(v) {
			return Value{last}, last.name
		}
		steps = steps[:len(steps)-1]
	}
	return Ident(variable), variable
}

// steps are the variable, and what n selects from it step by step by name, up to n; nil where n is
// something else.
func (n *node) steps(variable string) []*node {
	switch n.op {
	case opIdent:
		if n.name == variable {
			return []*node{n}
		}
	case opSelect, opOpt:
		if s := n.args[0].steps(variable); s != nil {
			return append(s, n)
		}
	}
	return nil
}

func samePrefix(a, b []*node) []*node {
	for i := range a {
		if i == len(b) || !equal(a[i], b[i]) {
			return a[:i]
		}
	}
	return a
}

// SubstituteCommon puts w where v reads a path that Common gave.
func (v Value) SubstituteCommon(path, w Value) Value {
	root := path.n
	for root.op != opIdent {
		root = root.args[0]
	}
	return v.substitute(w, func(n *node) (*node, bool) { return w.n, equal(n, path.n) }, root.name)
}
