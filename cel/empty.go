package cel

import "slices"

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
