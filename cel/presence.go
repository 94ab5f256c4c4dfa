package cel

import "slices"

// What must be there for an expression to have a value.

// needs is what must be there for n to have a value.
func (g *guardContext) needs(n *node) conditions {
	switch n.op {
	case opIdent:
		return nil
	case opSelect:
		if outside, expr, ok := g.variable(n); ok {
			need, done := g.asked[n.name]
			if !done {
				need = outside.needs(expr)
				g.asked[n.name] = need
			}
			return need
		}
		return g.needs(n.args[0]).and(g.needsField(n.args[0], n.name))
	case opHas:
		return g.needs(n.args[0])
	case opIndex:
		return g.needsItems(n.args[0]).and(g.needs(n.args[1])).and(g.needsIndex(n))
	case opCall, opMember:
		if n.function() == FuncSize {
			return g.needsItems(n.args[0])
		}
		if n.op == opMember && (n.function() == FuncOr || n.function() == FuncOrValue) { // evaluate their argument when they must
			return g.needs(n.args[0])
		}
	case opAnd, opOr:
		return g.needsTruth(n)
	case opBinary:
		if n.operator() == In && n.args[1].isEmptyList() { // false, whatever is looked for
			return nil
		}
		if n.operator() == In {
			return g.needs(n.args[0]).and(g.needsItems(n.args[1]))
		}
	case opCond:
		return g.needs(n.args[0]).and(g.needsBranch(n))
	case opMacro:
		if n.isQuantifier() {
			return g.needsTruth(n)
		}
		return g.needsItems(n.args[0]).and(g.needsBody(n))
	}
	var out conditions
	for _, a := range n.args {
		out = out.and(g.needs(a))
	}
	return out
}

// needsItems is that n is there and has items: has() does not tell null from a list, as in
//
//	has(object.rules) && object.rules.all(r, ...)
func (g *guardContext) needsItems(n *node) conditions {
	out := g.needs(n)
	if s, ok := g.infer(n).shape.(NullableShape); ok && s.Nullable() {
		out = out.and(conditions{Func(FuncDyn, Value{n}).Ne(Null()).n})
	}
	return out
}

// needsTruth is that n is true or false, where that is a question.
func (g *guardContext) needsTruth(n *node) conditions {
	yes, asks1 := g.guarded(n, true, nil)
	no, asks2 := g.guarded(n, false, nil)
	if !asks1 && !asks2 {
		return nil
	}
	return conditions{Or(yes, no).n}
}

func (g *guardContext) needsBranch(n *node) conditions {
	c := Bool{Value{n.args[0]}}
	yes := g.needs(n.args[1]).without(g.tells(n.args[0], true))
	no := g.needs(n.args[2]).without(g.tells(n.args[0], false))
	switch {
	case len(yes)+len(no) == 0:
		return nil
	case len(yes) == 0:
		return conditions{Or(c, and(no)).n}
	case len(no) == 0:
		return conditions{Implies(c, and(yes)).n}
	}
	return conditions{CondBool(c, and(yes), and(no)).n}
}

// needsBody is what every element must have for a list to be filtered or mapped.
func (g *guardContext) needsBody(n *node) conditions {
	if len(n.vars) != 1 || n.macro() != MacroMap && n.macro() != MacroFilter && n.macro() != MacroExistsOne {
		return nil
	}
	in := g.inside(n)
	need := and(in.needs(n.args[1]))
	if len(n.args) == 3 {
		more := in.needs(n.args[2]).without(in.tells(n.args[1], true))
		need = And(need, Implies(Bool{Value{n.args[1]}}, and(more)))
		if len(more) == 0 {
			need = and(in.needs(n.args[1]))
		}
	}
	if need.IsTrue() {
		return nil
	}
	return conditions{Value{n.args[0]}.Macro(MacroAll, Ident(n.vars[0]), need.Value).n}
}

// needsField is that a value has a field.
func (g *guardContext) needsField(of *node, name string) conditions {
	if of.isNothing() {
		return conditions{False().n}
	}
	s := g.infer(of)
	if !s.data {
		return nil
	}
	if s.shape != nil {
		if _, always := s.shape.Field(name); always {
			if r, ok := g.root(of); ok && r.Null {
				return conditions{Value{of}.Ne(Null()).n}
			}
			return nil
		}
	}
	return conditions{Value{of}.Has(name).n}
}

// IsFault tells that v is an error on purpose whenever it is evaluated.
func (v Value) IsFault() bool {
	return v.n.op == opSelect && v.n.args[0].isNothing() || slices.ContainsFunc(v.n.always(), func(n *node) bool { return Value{n}.IsFault() })
}

// isNothing tells of dyn({}), of which to read a field is an error on purpose.
func (n *node) isNothing() bool {
	return n.op == opCall && n.function() == FuncDyn && n.args[0].op == opMap && len(n.args[0].args) == 0
}

// needsIndex is that a list is long enough, or that a map has a key, for a literal.
func (g *guardContext) needsIndex(n *node) conditions {
	switch i := n.args[1]; {
	case i.op == opString && g.infer(n.args[0]).data:
		return conditions{Value{i}.In(Value{n.args[0]}).n}
	case i.op == opInt && i.lit.(int64) >= 0 && g.isList(n.args[0]):
		return conditions{Value{n.args[0]}.Size().Compare(Greater, Value{i}).n}
	}
	return nil
}

// variable is the composed variable that n selects, and the guard outside of all macros,
// where it stands.
func (g *guardContext) variable(n *node) (outside *guardContext, expr *node, ok bool) {
	expr, ok = n.composed(g.Variables)
	return &guardContext{Surroundings: g.Surroundings, asked: g.asked}, expr, ok
}
