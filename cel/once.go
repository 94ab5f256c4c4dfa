package cel

import "slices"

// Once is v with each call that is made once, by cel.bind, where the body of a macro asks the same more
// than once for an element:
//
//	cs.all(c, has(ask(c).a) && ask(c).b)     cs.all(c, cel.bind(asked, ask(c), has(asked.a) && asked.b))
//
// is tells which calls count, and what their value is called. No call is made that was not made before.
func (v Value) Once(is func(Value) (hint string, ok bool)) Value {
	names := &Scope{}
	names.reserveAll([]*node{v.n})
	return v.Rewrite(func(w Value) Value {
		if w.n.op != opMacro {
			return w
		}
		return Value{w.n.each(func(i int, body *node) *node {
			if !w.n.binds(i) {
				return body
			}
			for _, call := range repeated(body, w.n.vars, is) {
				hint, _ := is(Value{call})
				body = bound(body, call, names.Fresh(hint))
			}
			return body
		})}
	})
}

// repeated are the calls that a body makes more than once, and that read one of some variables.
func repeated(body *node, vars []string, is func(Value) (string, bool)) (calls []*node) {
	Value{body}.Walk(func(v Value) bool {
		_, counts := is(v)
		if counts && v.n.readsAny(vars) && body.has(v.n) > 1 && !slices.ContainsFunc(calls, func(c *node) bool { return equal(c, v.n) }) {
			calls = append(calls, v.n)
		}
		return true
	})
	return calls
}

// has is how many times n has a part.
func (n *node) has(part *node) int {
	if equal(n, part) {
		return 1
	}
	times := 0
	for _, a := range n.args {
		times += a.has(part)
	}
	return times
}

// bound is n with a call made before what has it more than once, where that makes it in any case.
func bound(n, call *node, name string) *node {
	times := n.has(call)
	inside := func() *node { return n.each(func(_ int, a *node) *node { return bound(a, call, name) }) }
	switch {
	case times < 2:
		return n
	case slices.ContainsFunc(n.args, func(a *node) bool { return a.has(call) == times }):
		return inside()
	}
	rest := n
	var before []*node
	if n.op == opAnd || n.op == opOr {
		first := slices.IndexFunc(n.args, func(a *node) bool { return a.has(call) > 0 })
		before, rest = n.args[:first], n.with(n.args[first:])
	}
	if !rest.makes(call) {
		return inside()
	}
	x := Ident(name)
	body := Value{rest}.Rewrite(func(v Value) Value {
		if equal(v.n, call) {
			return x
		}
		return v
	})
	out := Func(funcBind, x, Value{call}, body).n
	if len(before) == 0 {
		return out
	}
	return n.with(append(slices.Clone(before), out))
}

// makes reports whether whoever evaluates n makes a call.
func (n *node) makes(call *node) bool {
	switch {
	case equal(n, call):
		return true
	case n.op == opAnd || n.op == opOr:
		return n.args[0].makes(call)
	case n.op == opCond && n.args[1].makes(call) && n.args[2].makes(call):
		return true
	}
	return slices.ContainsFunc(n.always(), func(a *node) bool { return a.makes(call) })
}
