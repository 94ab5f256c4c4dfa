package cel

// Fuse makes one quantifier of several that say the same of different lists:
// a.all(x, p) && b.all(x, p) becomes join(a, b).all(x, p), and likewise for
// exists and ||. Only lists for which joinable is true are put together, and
// their order is as they stand.
func (b Bool) Fuse(joinable func(Value) bool, join func([]Value) Value) Bool {
	f := fuser{joinable, join}
	return b.Rewrite(f.rewrite).AsBool()
}

type fuser struct {
	joinable func(Value) bool
	join     func([]Value) Value
}

func (f fuser) rewrite(v Value) Value {
	var q Quantifier
	switch v.n.op {
	case opAnd:
		q = ForAll
	case opOr:
		q = ForSome
	default:
		return v
	}
	var terms []Bool
	done := make([]bool, len(v.n.args))
	for i := range v.n.args {
		if !done[i] {
			terms = append(terms, f.fused(v.n.args, i, q, done))
		}
	}
	if len(terms) == len(v.n.args) {
		return v
	}
	return andOr(v.n.op, terms).Value
}

// fused is term i together with those after it that say the same.
func (f fuser) fused(args []*node, i int, q Quantifier, done []bool) Bool {
	first := args[i]
	if !f.loop(first, q) {
		return Bool{Value{first}}
	}
	lists := []Value{{first.args[0]}}
	for j := i + 1; j < len(args); j++ {
		n := args[j]
		if !done[j] && f.loop(n, q) && n.vars[0] == first.vars[0] && equal(n.args[1], first.args[1]) {
			lists = append(lists, Value{n.args[0]})
			done[j] = true
		}
	}
	if len(lists) == 1 {
		return Bool{Value{first}}
	}
	return q.Of(f.join(lists), Ident(first.vars[0]), Bool{Value{first.args[1]}})
}

func (f fuser) loop(n *node, q Quantifier) bool {
	return n.macro() == q.macro() && len(n.vars) == 1 && len(n.args) == 2 && f.joinable(Value{n.args[0]})
}

// OptionalPath is the fields of a chain of selections, optional or not, that
// begins with an identifier; an orValue at its end is looked through, and
// defaulted tells that there is one.
func (v Value) OptionalPath() (path []string, defaulted, ok bool) {
	n := v.n
	if n.function() == FuncOrValue {
		defaulted, n = true, n.args[0]
	}
	for ; n.op == opSelect || n.op == opOpt; n = n.args[0] {
		path = append([]string{n.name}, path...)
	}
	if n.op != opIdent {
		return nil, false, false
	}
	return append([]string{n.name}, path...), defaulted, true
}

// Boolean tells that CEL knows v to be boolean when nothing is known of the
// request: a selection or an orValue is not.
func (b Bool) Boolean() bool { return b.n.isBool() }

// Rooted is b in a form that CEL knows to be boolean.
func (b Bool) Rooted() Bool {
	if b.Boolean() {
		return b
	}
	return b.Eq(Lit(true).Value)
}
