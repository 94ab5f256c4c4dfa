package cel

// A Definition is a composed variable.
type Definition struct {
	Name string
	Expr Value
}

// Violation is !b for a check that is never an error, put as a search for what is
// wrong: negations stand as far inside as they go, and a list that is made only
// to be asked whether it is empty is searched instead of made, if a variable
// holds it too. For a check that can err it is not the same: it may be an error
// where b is none.
func (b Bool) Violation(variables []Definition) Bool {
	return Bool{Value{search{variables}.truth(b.n, false)}}
}

// Searching is b put in the same way.
func (b Bool) Searching() Bool { return Bool{Value{search{}.truth(b.n, true)}} }

// A search puts conditions that are never an error in another way.
type search struct{ variables []Definition }

// truth is: n is want.
func (s search) truth(n *node, want bool) *node {
	switch n.op {
	case opBool:
		return Lit(n.lit.(bool) == want).n
	case opNot:
		return s.truth(n.args[0], !want)
	case opAnd, opOr:
		parts := make([]Bool, len(n.args))
		for i, a := range n.args {
			parts[i] = Bool{Value{s.truth(a, want)}}
		}
		if want {
			return andOr(n.op, parts).n
		}
		return andOr(n.op.dual(), parts).n
	case opCond:
		return s.choice(n.args[0], s.truth(n.args[1], want), s.truth(n.args[2], want))
	case opMacro:
		if n.isQuantifier() && len(n.vars) == 1 {
			return s.quantified(n, want)
		}
	case opBinary:
		if n.asksNever() {
			return Lit(want == (n.operator() == Differs)).n
		}
		return s.comparison(n, want)
	}
	return literally(n, want).n
}

// choice is c ? a : b for conditions. It looks at c once: choices stand in the
// conditions of choices, and to look twice at each would double with each.
func (s search) choice(c, a, b *node) *node {
	yes, no := Bool{Value{a}}, Bool{Value{b}}
	is := func(want bool) Bool { return Bool{Value{s.truth(c, want)}} }
	switch {
	case equal(a, b):
		return a
	case yes.IsTrue():
		return Or(is(true), no).n
	case yes.IsFalse():
		return And(is(false), no).n
	case no.IsTrue():
		return Or(is(false), yes).n
	case no.IsFalse():
		return And(is(true), yes).n
	}
	return CondBool(is(true), yes, no).n
}

// quantified turns one quantifier into the other, which negates its body.
func (s search) quantified(n *node, want bool) *node {
	quantifier := n.macro()
	if !want {
		quantifier, _ = quantifier.dual()
	}
	exists := quantifier == MacroExists
	body := s.truth(n.args[1], want)
	list := n.args[0]
	if each, ok := s.unrolled(list, n.vars[0], body, exists); ok {
		return each
	}
	if b := (Bool{Value{body}}); exists && b.IsFalse() || !exists && b.IsTrue() {
		return Lit(!exists).n
	} else if _, known := b.Const(); known {
		return s.filled(list, exists)
	}
	return Value{list}.Macro(quantifier, Ident(n.vars[0]), Value{body}).n
}

// unrolled is a quantifier over a list that is written out, if its body compares
// the element with a literal.
func (s search) unrolled(list *node, x string, body *node, exists bool) (*node, bool) {
	if list.op != opList || body.op != opBinary || !body.args[1].isLiteral() {
		return nil, false
	}
	if v := body.args[0]; v.op != opIdent || v.name != x {
		return nil, false
	}
	parts := make([]Bool, len(list.args))
	for i, e := range list.args {
		if e.op == opMaybe {
			return nil, false
		}
		parts[i] = Bool{Value{s.compared(body, e, true)}}
	}
	if exists {
		return Or(parts...).n, true
	}
	return And(parts...).n, true
}

// compared is a comparison with v on its left; the branches of a ternary are
// compared each for itself.
func (s search) compared(n, v *node, want bool) *node {
	if v.op == opCond {
		return s.choice(v.args[0], s.compared(n, v.args[1], want), s.compared(n, v.args[2], want))
	}
	m := foldCompare(newNode(node{op: opBinary, name: string(n.operator()), args: []*node{v, n.args[1]}}))
	if m.op == opBool {
		return Lit(m.lit.(bool) == want).n
	}
	return literally(m, want).n
}

func (n *node) isLiteral() bool {
	switch n.op {
	case opNull, opBool, opInt, opUint, opDouble, opString, opBytes:
		return true
	}
	return false
}

// comparison is a comparison that is want; one of a size with nothing asks
// whether there is anything.
func (s search) comparison(n *node, want bool) *node {
	left, right := n.args[0], n.args[1]
	if of, ok := left.sized(); ok && right.op == opInt {
		switch size := right.lit.(int64); {
		case size == 0 && n.operator() == Equals, size == 0 && n.operator() == LessEqual, size == 1 && n.operator() == Less:
			return s.filled(of, !want)
		case size == 0 && n.operator() == Differs, size == 0 && n.operator() == Greater, size == 1 && n.operator() == GreaterEqual:
			return s.filled(of, want)
		}
	}
	if left.op == opCond && right.isLiteral() {
		return s.compared(n, left, want)
	}
	if !want && left.isInt() && right.isInt() {
		if opposite, ok := n.operator().opposite(); ok {
			return newNode(node{op: opBinary, name: string(opposite), args: n.args})
		}
	}
	return literally(n, want).n
}

// sized is what n is the size of.
func (n *node) sized() (*node, bool) {
	if n.function() == FuncSize && len(n.args) == 1 {
		return n.args[0], true
	}
	return nil, false
}

// filled is: there is something in n, or nothing.
func (s search) filled(n *node, want bool) *node {
	switch m := s.meaning(n); {
	case m.op == opList && len(m.args) == 0:
		return Lit(!want).n
	case m.macro() == MacroMap && len(m.args) == 2:
		return s.filled(m.args[0], want)
	case m.macro() == MacroFilter && len(m.vars) == 1, m.macro() == MacroMap:
		return s.truth(Value{m.args[0]}.Macro(MacroExists, Ident(m.vars[0]), Value{m.args[1]}).n, want)
	case m.operator() == Plus:
		a, b := Bool{Value{s.filled(m.args[0], want)}}, Bool{Value{s.filled(m.args[1], want)}}
		if want {
			return Or(a, b).n
		}
		return And(a, b).n
	case m.op == opCond:
		return s.choice(m.args[0], s.filled(m.args[1], want), s.filled(m.args[2], want))
	}
	return literally(Value{n}.Size().Ne(Int(0)).n, want).n
}

// meaning is the expression behind a variable, if n is one.
func (s search) meaning(n *node) *node {
	if n.op == opSelect && n.args[0].op == opIdent && n.args[0].name == "variables" {
		for _, v := range s.variables {
			if v.Name == n.name {
				return s.meaning(v.Expr.n)
			}
		}
	}
	return n
}
