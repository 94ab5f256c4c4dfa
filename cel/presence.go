package cel

import "slices"

// What must be there for an expression to have a value.

// needs is what must be there for n to have a value.
func (g *guardContext) needs(n *node) conditions {
	switch n.op {
	case opIdent:
		return nil
	case opSelect:
		if v, ok := g.variable(n); ok {
			return v.needs()
		}
		return g.needs(n.args[0]).and(g.needsField(n.args[0], n.name))
	case opHas:
		return g.needs(n.args[0])
	case opIndex:
		return g.needsItems(n.args[0]).and(g.needs(n.args[1])).and(g.needsIndex(n))
	case opCall:
		if n.function() == FuncSize {
			return g.needsItems(n.args[0])
		}
	case opMember:
		if n.function() == FuncSize {
			return g.needsItems(n.args[0])
		}
		if n.function() == FuncOr || n.function() == FuncOrValue { // evaluate their argument when they must
			return g.needs(n.args[0])
		}
	case opAnd, opOr:
		return g.needsTruth(n)
	case opBinary:
		if l := n.args[1]; n.operator() == In && l.op == opList && len(l.args) == 0 { // false, whatever is looked for
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
	return g.needsAll(n.args)
}

func (g *guardContext) needsAll(ns []*node) conditions {
	var out conditions
	for _, n := range ns {
		out = out.and(g.needs(n))
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
	return v.n.isNothing() || slices.ContainsFunc(v.n.always(), func(n *node) bool { return Value{n}.IsFault() })
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

// A composed variable is inferred from outside of all macros.
type composed struct {
	g    *guardContext
	name string
	expr *node
}

func (c composed) needs() conditions {
	need, done := c.g.asked[c.name]
	if !done {
		need = c.g.needs(c.expr)
		c.g.asked[c.name] = need
	}
	return need
}

// variable is the composed variable that n selects.
func (g *guardContext) variable(n *node) (composed, bool) {
	if n.op != opSelect || n.args[0].op != opIdent || n.args[0].name != "variables" || g.Variables == nil {
		return composed{}, false
	}
	v, ok := g.Variables(n.name)
	return composed{&guardContext{Surroundings: g.Surroundings, asked: g.asked}, n.name, v.n}, ok
}
