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
		if v, ok := n.composed(r.Variables); ok {
			return r.in(v)
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
		if n.operator() == In && n.args[1].isEmptyList() {
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

// What an expression asks about what may be missing.

// Selection is the path that v reads without asking for any of it, as in object.spec.a.
func (v Value) Selection() (path []string, ok bool) {
	path, ok = v.Path()
	return path, ok && v.n.isSelection()
}

// Asked is the path that v asks for, where v is as has(object.spec.a).
func (v Value) Asked() (path []string, ok bool) {
	if v.IsZero() || v.n.op != opHas {
		return nil, false
	}
	path, ok = Value{v.n.args[0]}.Selection()
	return append(path, v.n.name), ok
}

// ReadsFirst is the path that is read before all else of v, and without which v is an error:
// object.spec.containers of object.spec.containers.map(c, c.name) + ["x"].
func (v Value) ReadsFirst() (path []string, ok bool) {
	for n := v.n; ; n = n.args[0] {
		switch n.op {
		case opSelect:
			if path, ok := (Value{n}).Selection(); ok {
				return path, true
			}
		case opMacro, opMember, opIndex, opBinary, opCond:
		default:
			return nil, false
		}
	}
}

// Asks tells that v, or a part of it, asks what is there: by has, by an optional
// selection, or by in.
func (v Value) Asks() bool {
	return v.n.some(func(n *node) bool {
		return n.op == opHas || n.op == opOpt || n.op == opOptIdx || n.operator() == In
	})
}

// Conjuncts are the terms that must all be true for b to be true.
func (b Bool) Conjuncts() (out []Value) {
	if b.n.op != opAnd {
		return []Value{b.Value}
	}
	for _, a := range b.n.args {
		out = append(out, Value{a})
	}
	return out
}

// Unread is what is left of needs where whoever evaluates b gets an error unless they hold:
//
//	needs: has(object.spec.a) && has(object.spec.b)
//	b:     object.spec.a == 1
//	left:  has(object.spec.b)
func (b Bool) Unread(needs Bool, variables func(name string) (Value, bool)) Bool {
	return unread{b, variables}.of(needs, nil)
}

type unread struct {
	b         Bool
	variables func(string) (Value, bool)
}

// of is what is left of a need that counts where some conditions hold.
func (u unread) of(need Bool, under []Bool) Bool {
	n := need.n
	switch n.op {
	case opAnd:
		var rest []Bool
		for _, a := range n.args {
			if left := u.of(Bool{Value{a}}, under); !left.IsTrue() {
				rest = append(rest, left)
			}
		}
		return And(rest...)
	case opOr:
		last := len(n.args) - 1
		in := slices.Clone(under)
		for _, a := range n.args[:last] {
			in = append(in, Not(Bool{Value{a}}))
		}
		if u.of(Bool{Value{n.args[last]}}, in).IsTrue() || u.takes(n.args, under) {
			return True()
		}
	case opCond:
		c := Bool{Value{n.args[0]}}
		then := u.of(Bool{Value{n.args[1]}}, append(slices.Clone(under), c))
		els := u.of(Bool{Value{n.args[2]}}, append(slices.Clone(under), Not(c)))
		if then.IsTrue() && els.IsTrue() {
			return then
		}
		return CondBool(c, then, els)
	case opMacro:
		if n.macro() == MacroAll && len(n.vars) == 1 && u.goesThrough(n, under) {
			return True()
		}
	default:
		if u.errsUnless(n, under) {
			return True()
		}
	}
	return need
}

// goesThrough tells that b makes something of each element of a list, which is an error where
// one of them is not as n needs it:
//
//	needs: object.l.all(x, has(x.a))
//	b:     object.l.map(x, x.a + 'b')
func (u unread) goesThrough(n *node, under []Bool) bool {
	is := func(m *node) bool {
		if m.macro() != MacroMap && m.macro() != MacroTransformList || m.vars[len(m.vars)-1] != n.vars[0] || !equal(m.args[0], n.args[0]) {
			return false
		}
		body := m.args[len(m.args)-1]
		if len(m.args) == 3 { // behind a condition
			body = Cond(Bool{Value{m.args[1]}}, Value{body}, Null()).n
		}
		return unread{Bool{Value{body}}, u.variables}.of(Bool{Value{n.args[1]}}, under).IsTrue()
	}
	return Reading{is: is, Under: under, Variables: u.variables}.In(u.b.Value)
}

// errsUnless tells that b is an error where n, which asks for one thing, does not hold.
func (u unread) errsUnless(n *node, under []Bool) bool {
	switch {
	case n.op == opHas:
		return u.reads(Value{n.args[0]}.Field(n.name), under)
	case n.op == opMember && n.function() == FuncHasValue:
		return u.reads(n.args[0].selected(), under)
	case n.op == opCall && n.function() == FuncIsQuantity:
		return u.reads(Func(FuncQuantity, Value{n.args[0]}), under)
	case n.operator() == In:
		return u.reads(Value{n.args[1]}.Index(Value{n.args[0]}), under)
	}
	return u.takes([]*node{n}, under)
}

func (u unread) reads(v Value, under []Bool) bool {
	return Reading{Value: v, Under: under, Variables: u.variables}.In(u.b.Value)
}

// takes tells that b does with a value what is an error for other types than those that the
// tests, of which one must hold, allow.
func (u unread) takes(tests []*node, under []Bool) bool {
	var kinds []Kind
	var of *node
	for _, n := range tests {
		x, allowed := n.allows()
		if x == nil || of != nil && !equal(of, x) {
			return false
		}
		of, kinds = x, append(kinds, allowed...)
	}
	is := func(n *node) bool {
		if len(n.args) == 0 || !equal(n.args[0].plain(), of) {
			return false
		}
		takes := n.takes()
		return takes != nil && !slices.ContainsFunc(takes, func(k Kind) bool { return !slices.Contains(kinds, k) })
	}
	return Reading{is: is, Under: under, Variables: u.variables}.In(u.b.Value)
}

// allows is the value that n asks for the type of, and the kinds that it may have then.
func (n *node) allows() (of *node, kinds []Kind) {
	switch {
	case n.op != opBinary:
		return nil, nil
	case n.operator() == Equals && n.args[0].function() == FuncType && n.args[1].op == opIdent:
		return n.args[0].args[0].plain(), []Kind{kindNamed(n.args[1].name)}
	case n.operator() == Differs && n.args[1].op == opNull:
		return n.args[0].plain(), []Kind{BoolKind, NumberKind, StringKind, ListKind, MapKind}
	}
	return nil, nil
}

// takes are the kinds of n's first argument for which it is not an error; nil where that is not
// known.
func (n *node) takes() []Kind {
	switch n.op {
	case opSelect:
		return []Kind{MapKind}
	case opMacro:
		return []Kind{ListKind, MapKind}
	case opMember, opCall:
		switch n.function() {
		case FuncStartsWith, FuncEndsWith, FuncContains, FuncMatches, FuncLowerASCII, FuncUpperASCII, FuncSplit, FuncReplace, FuncFind:
			return []Kind{StringKind}
		case FuncSize:
			return []Kind{StringKind, ListKind, MapKind}
		}
	}
	return nil
}

// selected is an optional selection as one that is an error where nothing is there.
func (n *node) selected() Value {
	switch n.op {
	case opOpt:
		return n.args[0].selected().Field(n.name)
	case opOptIdx:
		return n.args[0].selected().Index(Value{n.args[1]})
	}
	return Value{n}
}

// Given is b where c holds, in a shorter way; it may be anything where c does not.
func (b Bool) Given(c Bool) Bool {
	s := newSimplifier(b.Value)
	s.known = s.known.and(c.n, true)
	return Bool{Value{s.whole(b.n)}}
}
