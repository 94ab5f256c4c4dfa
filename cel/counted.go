package cel

import "slices"

// Counted searches where b compares two counts, of which one counts some of what the other
// counts:
//
//	size(l.filter(x, p(x))) != size(l.filter(x, p(x) && q(x)))    l.exists(x, p(x) && !q(x))
//
// It is for conditions that are never an error: a search that finds does not read the rest.
func (b Bool) Counted() Bool {
	return b.Rewrite(func(v Value) Value {
		if v.n.op != opBinary {
			return v
		}
		more, ok := rest(v.n.args[0], v.n.args[1])
		if less, mirrored := rest(v.n.args[1], v.n.args[0]); !ok && mirrored {
			more, ok = less, true
		}
		switch op := v.n.operator(); {
		case ok && op == Differs:
			return more.Value
		case ok && op == Equals:
			return Not(more).Value
		}
		return v
	}).AsBool()
}

// rest is: there is something that the first of two counts counts, and the second does not; ok
// tells that the first counts all that the second counts.
func rest(of, part *node) (b Bool, ok bool) {
	if of.operator() == Plus && part.operator() == Plus {
		left, ok := rest(of.args[0], part.args[0])
		right, ok2 := rest(of.args[1], part.args[1])
		if !ok || !ok2 {
			return b, false
		}
		return Or(left, right), true
	}
	if all, ok := of.sized(); ok {
		if some, ok := part.sized(); ok {
			return unfiltered(all, some)
		}
		return b, false
	}
	if of.function() != FuncSum || part.function() != FuncSum {
		return b, false
	}
	each, eachPart := of.args[0], part.args[0]
	if each.macro() != MacroMap || eachPart.macro() != MacroMap || len(each.args) != 2 || !sameLoop(each, eachPart) {
		return b, false
	}
	if b, ok = rest(each.args[1], eachPart.args[1]); !ok {
		return b, false
	}
	return ForSome.Of(Value{each.args[0]}, Ident(each.vars[0]), b), true
}

// unfiltered is: there is something in one list that a filter leaves out of the other.
func unfiltered(all, some *node) (b Bool, ok bool) {
	if some.macro() != MacroFilter {
		return b, false
	}
	if all.macro() != MacroFilter {
		x, out := Ident(some.vars[0]), Not(Bool{Value{some.args[1]}})
		return ForSome.Of(Value{all}, x, out), equal(all, some.args[0])
	}
	if !sameLoop(all, some) {
		return b, false
	}
	var more []Bool
	terms := slices.Clone(all.args[1].terms(opAnd))
	for _, c := range some.args[1].terms(opAnd) {
		if i := slices.IndexFunc(terms, func(t *node) bool { return equal(t, c) }); i >= 0 {
			terms = slices.Delete(terms, i, i+1)
		} else {
			more = append(more, Bool{Value{c}})
		}
	}
	left := And(Bool{Value{all.args[1]}}, Not(And(more...)))
	return ForSome.Of(Value{all.args[0]}, Ident(all.vars[0]), left), len(terms) == 0
}

// sameLoop tells of two macros that go through one list by one name.
func sameLoop(a, b *node) bool {
	return len(a.vars) == 1 && slices.Equal(a.vars, b.vars) && equal(a.args[0], b.args[0])
}
