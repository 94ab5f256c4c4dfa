package cel

import "slices"

// A Reading is an expression that is looked for in others: Value, where the
// conditions Under hold. Where one of them does not, nobody needs to read it.
type Reading struct {
	Value Value
	Under []Bool
	// Variables are the composed variables, by name.
	Variables func(name string) (Value, bool)
	is        func(*node) bool // in place of Value
}

// In tells that whoever evaluates v under the conditions evaluates the reading,
// and so errs where it is an error.
func (r Reading) In(v Value) bool { return r.in(v.n) }

func (r Reading) in(n *node) bool {
	if r.is != nil && r.is(n) || r.is == nil && equal(n, r.Value.n) {
		return true
	}
	switch n.op {
	case opSelect:
		if v, ok := r.variable(n); ok {
			return r.In(v)
		}
	case opCond:
		if holds, known := r.given(n.args[0]); known {
			return holds && r.in(n.args[1]) || !holds && r.in(n.args[2])
		}
		return r.in(n.args[0]) || r.in(n.args[1]) && r.in(n.args[2])
	case opAnd, opOr: // one term may decide without the others
		rest := slices.DeleteFunc(slices.Clone(n.args), func(a *node) bool { _, known := r.given(a); return known })
		return len(rest) > 0 && !slices.ContainsFunc(rest, func(a *node) bool { return !r.in(a) })
	case opBinary: // nobody evaluates what is looked for in an empty list
		if n.operator() == In && n.args[1].op == opList && len(n.args[1].args) == 0 {
			return false
		}
	}
	return slices.ContainsFunc(n.always(), r.in)
}

// given tells whether n, or its negation, is one of the conditions.
func (r Reading) given(n *node) (holds, known bool) {
	for _, c := range r.Under {
		switch {
		case equal(c.n, n):
			return true, true
		case equal(Not(c).n, n), equal(c.n, Not(Bool{Value{n}}).n):
			return false, true
		}
	}
	return false, false
}

func (r Reading) variable(n *node) (Value, bool) {
	if r.Variables == nil || n.args[0].op != opIdent || n.args[0].name != "variables" {
		return Value{}, false
	}
	return r.Variables(n.name)
}
