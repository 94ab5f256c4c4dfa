package cel

import "slices"

// Substitute puts w where v reads the variable name. Variables that v binds are
// renamed where they would capture one that w reads.
func (v Value) Substitute(name string, w Value) Value {
	return v.substitute(w, func(n *node) (*node, bool) {
		return w.n, n.op == opIdent && n.name == name
	}, name)
}

// Rename makes v read the variable to where it read from.
func (v Value) Rename(from, to string) Value { return v.Substitute(from, Ident(to)) }

// SubstituteField puts w where v selects the field of the variable root, as in
// variables.x. has(variables.x) becomes true: what replaces the field is there.
func (v Value) SubstituteField(root, field string, w Value) Value {
	return v.substitute(w, func(n *node) (*node, bool) {
		name, ok := n.field()
		if !ok || name != field || !n.args[0].isPath([]string{root}) {
			return nil, false
		}
		switch n.op {
		case opHas:
			return True().n, true
		case opOpt, opOptIdx:
			return Func(FuncOptionalOf, w).n, true
		}
		return w.n, true
	}, root)
}

// SubstitutePath puts w where v reads path[0].path[1]..., and not where it reads what is
// there as an optional value, or asks whether it is.
func (v Value) SubstitutePath(path []string, w Value) Value {
	return v.substitute(w, func(n *node) (*node, bool) { return w.n, n.isPath(path) && !Value{n}.Asks() }, path[0])
}

// RenameField makes v select root.to where it selected root.from.
func (v Value) RenameField(root, from, to string) Value {
	return v.substitute(Ident(root), func(n *node) (*node, bool) {
		name, ok := n.field()
		if !ok || name != from || !n.args[0].isPath([]string{root}) {
			return nil, false
		}
		of := Value{n.args[0]}
		switch n.op {
		case opHas:
			return of.Has(to).n, true
		case opOpt, opOptIdx:
			return of.Optional(to).n, true
		}
		return of.Field(to).n, true
	}, root)
}

// substitute replaces each node for which at has a replacement, unless the
// variable root is another one there, bound by a macro.
func (v Value) substitute(w Value, at func(*node) (*node, bool), root string) Value {
	if v.IsZero() {
		return v
	}
	s := &substitution{at: at, root: root, free: w.Idents()}
	return Value{s.node(v.n)}
}

type substitution struct {
	at   func(*node) (*node, bool)
	root string
	free []string // what the replacement reads
}

func (s *substitution) node(n *node) *node {
	if m, ok := s.at(n); ok {
		return m
	}
	hidden := n.op == opMacro && slices.Contains(n.vars, s.root)
	if n.op == opMacro && !hidden {
		n = s.avoidCapture(n)
	}
	return n.each(func(i int, a *node) *node {
		if hidden && i > 0 {
			return a
		}
		return s.node(a)
	})
}

// avoidCapture renames the variables of a macro that the replacement reads, if
// there is anything to replace in the macro's bodies.
func (s *substitution) avoidCapture(n *node) *node {
	for i, x := range n.vars {
		if !slices.Contains(s.free, x) || !slices.ContainsFunc(n.args[1:], func(a *node) bool { return !equal(a, s.node(a)) }) {
			continue
		}
		n = n.rebound(i, append(slices.Clone(s.free), s.root)...)
	}
	return n
}

// rebound is a macro with another name for its variable i, which is none of those taken.
func (n *node) rebound(i int, taken ...string) *node {
	scope := &Scope{}
	scope.Reserve(taken...)
	scope.Reserve(n.vars...)
	scope.reserveAll(n.args[1:])
	m := *n
	m.vars, m.args = slices.Clone(n.vars), slices.Clone(n.args)
	m.vars[i] = scope.Fresh(n.vars[i])
	for j, b := range n.args[1:] {
		m.args[1+j] = Value{b}.Rename(n.vars[i], m.vars[i]).n
	}
	return newNode(m)
}

// Unbound is v where no macro binds a variable of the name: there it has another one.
func (v Value) Unbound(name string) Value {
	return v.Rewrite(func(w Value) Value {
		if i := slices.Index(w.n.vars, name); w.n.op == opMacro && i >= 0 {
			return Value{w.n.rebound(i)}
		}
		return w
	})
}

// Common is the path below a variable that goes first in everything v reads of it, and the
// last name on it; the variable itself where there is no such path.
//
//	pod.spec.a + pod.spec.?b.orValue(0)                    pod.spec
//	pod.?metadata.?labels.?a == pod.?metadata.?labels.?b   pod.?metadata.?labels
//	o.?l.orValue([]).size() == o.?l.orValue([])[0]         o.?l.orValue([])
//
// Whoever evaluates v evaluates the path, and errs where it is an error.
func (v Value) Common(variable string) (path Value, name string) {
	var steps []*node // from the variable outwards
	first := true
	walkFree(v.n, nil, func(n *node, bound []string) bool {
		read := n.steps(variable)
		if read != nil && !slices.Contains(bound, variable) {
			if first {
				steps, first = read, false
			}
			steps = samePrefix(steps, read)
		}
		return read == nil
	})
	for len(steps) > 1 {
		last := steps[len(steps)-1]
		if (Reading{Value: Value{last}}).In(v) {
			return Value{last}, Value{last}.LastField()
		}
		steps = steps[:len(steps)-1]
	}
	return Ident(variable), variable
}

// steps are the variable, and what n selects from it step by step by name, or has a default for, up
// to n; nil where n is something else.
func (n *node) steps(variable string) []*node {
	switch n.op {
	case opIdent:
		if n.name == variable {
			return []*node{n}
		}
	case opSelect, opOpt, opMember:
		if n.op == opMember && (!n.isOrValue() || !n.args[1].isEmptyList() && !n.args[1].isLiteral()) {
			return nil
		}
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

// OrEmpty is an expression for which a variable that may be null is an empty map then:
//
//	oldObject == null     false
//	size(oldObject)       size(oldObject == null ? {} : oldObject)
//	has(oldObject.spec)   has(oldObject.spec)
//
// A field of null is missing as one of an empty map is, so what selects one stays.
func (v Value) OrEmpty(variable string) Value {
	if v.IsZero() {
		return v
	}
	return Value{v.n.orEmpty(variable, nil)}
}

func (n *node) orEmpty(variable string, bound []string) *node {
	is := func(n *node) bool { return n.op == opIdent && n.name == variable && !slices.Contains(bound, variable) }
	switch {
	case is(n):
		return Cond(Value{n}.Eq(Null()), Map(), Value{n}).n
	case n.operator() == Equals || n.operator() == Differs:
		a, b := n.args[0], n.args[1]
		if is(a) && b.op == opNull || is(b) && a.op == opNull {
			return Lit(n.operator() == Differs).n
		}
	}
	_, selects := n.field()
	selects = selects || n.op == opIndex || n.op == opOptIdx
	return n.each(func(i int, a *node) *node {
		switch {
		case i == 0 && selects && is(a):
			return a
		case n.binds(i):
			return a.orEmpty(variable, append(slices.Clip(bound), n.vars...))
		}
		return a.orEmpty(variable, bound)
	})
}
