package cel

// What an expression asks about what may be missing.

// Same tells that v and w are the same tree.
func (v Value) Same(w Value) bool { return equal(v.n, w.n) }

// Selection is the path that v reads without asking for any of it, as in object.spec.a.
func (v Value) Selection() (path []string, ok bool) {
	switch {
	case v.IsZero():
		return nil, false
	case v.n.op == opIdent:
		return []string{v.n.name}, true
	case v.n.op != opSelect:
		return nil, false
	}
	path, ok = Value{v.n.args[0]}.Selection()
	return append(path, v.n.name), ok
}

// Asked is the path that v asks for, where v is as has(object.spec.a).
func (v Value) Asked() (path []string, ok bool) {
	if v.IsZero() || v.n.op != opHas {
		return nil, false
	}
	path, ok = Value{v.n.args[0]}.Selection()
	return append(path, v.n.name), ok
}

// Asks tells that v, or a part of it, asks what is there: by has, by an optional
// selection, or by in.
func (v Value) Asks() bool {
	return v.n.some(func(n *node) bool {
		return n.op == opHas || n.op == opOpt || n.op == opOptIdx || n.operator() == In
	})
}
