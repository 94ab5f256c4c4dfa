package cel

// ByName is v with one loop through the names of the lists that a sum adds up, where these are
// fields of one place, p, below a variable, and the sum is searched:
//
//	(p.a + p.?b.orValue([])).exists(x, q)    ['a', 'b'].exists(field, p[?field].orValue([]).exists(x, q))
//
// It reads p once. It is for conditions that are never an error.
func (v Value) ByName(variable string) Value {
	return v.Rewrite(func(v Value) Value {
		if !v.n.isQuantifier() || len(v.n.vars) != 1 {
			return v
		}
		place, names := v.n.args[0].summed()
		if place == nil || len(names) < 2 || (Value{place}).Count(variable) != 1 || (Value{v.n.args[1]}).Count(variable) > 0 {
			return v
		}
		scope := &Scope{}
		scope.reserveAll([]*node{v.n})
		field := Ident(scope.Fresh("field"))
		each := v.n.with([]*node{Value{place}.OptIndex(field).OrValue(List()).n, v.n.args[1]})
		return Strings(names...).Macro(v.n.macro(), field, Value{each})
	})
}

// summed is the place of the lists that n adds up, and their names; nil where there is no such
// place.
func (n *node) summed() (place *node, names []string) {
	if n.operator() == Plus {
		left, some := n.args[0].summed()
		right, more := n.args[1].summed()
		if left == nil || right == nil || !equal(left, right) {
			return nil, nil
		}
		return left, append(some, more...)
	}
	of := n
	if inner := n.emptyIfMissing(); inner != nil {
		of = inner
	}
	if of.op != opSelect && of.op != opOpt {
		return nil, nil
	}
	return of.args[0], []string{of.name}
}
