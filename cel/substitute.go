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
	return v.substitute(w, func(n *node) (*node, bool) { return w.n, n.isPlainPath(path) }, path[0])
}

func (n *node) isPlainPath(path []string) bool {
	if n.op != opSelect && n.op != opIndex {
		return len(path) == 1 && n.op == opIdent && n.name == path[0]
	}
	name, ok := n.field()
	last := len(path) - 1
	return ok && last > 0 && name == path[last] && n.args[0].isPlainPath(path[:last])
}

// RenameField makes v select root.to where it selected root.from.
func (v Value) RenameField(root, from, to string) Value {
	return v.substitute(Ident(root), func(n *node) (*node, bool) {
		name, ok := n.field()
		if !ok || name != from || !n.args[0].isPath([]string{root}) {
			return nil, false
		}
		return renamed(n, to), true
	}, root)
}

func renamed(n *node, to string) *node {
	v := Value{n.args[0]}
	switch n.op {
	case opHas:
		return v.Has(to).n
	case opOpt, opOptIdx:
		return v.Opt(to).n
	}
	return v.Field(to).n
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
	if len(n.args) == 0 {
		return n
	}
	if n.op != opMacro {
		return n.with(s.nodes(n.args))
	}
	list := s.node(n.args[0])
	if slices.Contains(n.vars, s.root) {
		return n.with(append([]*node{list}, n.args[1:]...))
	}
	n = s.avoidCapture(n)
	return n.with(append([]*node{list}, s.nodes(n.args[1:])...))
}

func (s *substitution) nodes(ns []*node) []*node {
	out := make([]*node, len(ns))
	for i, n := range ns {
		out[i] = s.node(n)
	}
	return out
}

// avoidCapture renames the variables of a macro that the replacement reads, if
// there is anything to replace in the macro's bodies.
func (s *substitution) avoidCapture(n *node) *node {
	for i, x := range n.vars {
		if !slices.Contains(s.free, x) || slices.EqualFunc(s.nodes(n.args[1:]), n.args[1:], equal) {
			continue
		}
		scope := &Scope{}
		scope.Reserve(s.free...)
		scope.Reserve(n.vars...)
		scope.Reserve(s.root)
		scope.reserveAll(n.args[1:])
		m := *n
		m.vars = slices.Clone(n.vars)
		m.vars[i] = scope.Fresh(x)
		m.args = slices.Clone(n.args)
		for j, b := range n.args[1:] {
			m.args[1+j] = Value{b}.Rename(x, m.vars[i]).n
		}
		n = newNode(m)
	}
	return n
}
