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
	found := false
	v.Walk(func(part Value) bool {
		switch part.n.op {
		case opHas, opOpt, opOptIdx:
			found = true
		case opBinary:
			found = found || part.n.operator() == In
		}
		return !found
	})
	return found
}
