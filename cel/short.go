package cel

import (
	"fmt"
	"slices"
)

// Short is v in the form that it is written in: with one question for a path where v asks
// for each of its steps, and none whether a list or a text is there where an empty one
// comes out as one that is missing.
//
//	has(o.spec) && has(o.spec.tls)                 o.?spec.?tls.hasValue()
//	!has(o.spec) || !has(o.spec.tls)               !o.?spec.?tls.hasValue()
//	has(o.l) && o.?l.orValue([]).exists(x, ...)    o.?l.orValue([]).exists(x, ...)
//	size(o.l) != 0 && o.l.exists(x, ...)           o.l.exists(x, ...)
//	has(o.name) && o.name == 'a'                   o.?name.orValue('') == 'a'
//	!has(o.name) || !o.name.startsWith('a')        !o.?name.orValue('').startsWith('a')
//	has(o.n) && o.n > 1                            o.?n.orValue(0) > 1
//	!(o.n > 1), !(o.n == 1)                        o.n <= 1, o.n != 1
//	o.?type.orValue('long text') == 'long text'    !has(o.type) || o.type == 'long text'
//	[o.l].exists(l, l.exists(x, ...))              o.l.exists(x, ...)
//	o.?n.hasValue() ? o.n : 1                      o.?n.orValue(1)
//	n.contains('a') || n.contains('b') || ...      ['a', 'b', ...].exists(part, n.contains(part))
//
// The two are the same for any o, also for one with other values on the way.
func (v Value) Short() Value {
	computes := false // of double('NaN') no order has an opposite
	v.Calls(func(name string, _ int) { computes = computes || name == string(FuncDouble) })
	short := v.Rewrite(func(v Value) Value {
		switch v.n.op {
		case opNot:
			if arg := v.n.args[0]; arg.op == opNot && arg.args[0].isBool() {
				return Value{arg.args[0]}
			}
			if !computes {
				return Value{v.n.args[0].unordered()}
			}
		case opAnd:
			return Value{presence{opAnd, Differs, MacroExists}.short(v.n)}
		case opOr:
			return Value{presence{opOr, Equals, MacroAll}.short(v.n)}
		case opBinary:
			return Value{v.n.withoutDefault()}
		case opCond:
			return Cond(Bool{Value{v.n.args[0]}}, Value{v.n.args[1]}, Value{v.n.args[2]})
		case opMacro:
			return Value{v.n.withoutName()}
		}
		return v
	}).Rewrite(func(v Value) Value { return Value{v.n.withElements().listed()} })
	if v.n.isBool() {
		return short.AsBool().Rooted().Value
	}
	return short
}

// withElements is a loop through m[?'k'].orValue([]) as one through m[?'k'].orValue(dyn([])),
// where its body takes an element for more than one thing: the type checker, to which a field
// is of any type, gives what is found by an index the type of the first one, and refuses the others.
func (n *node) withElements() *node {
	if n.op != opMacro || !n.args[0].isOrValue() || n.args[0].args[0].op != opOptIdx {
		return n
	}
	found, empty := n.args[0].args[0], n.args[0].args[1]
	if len(empty.args) > 0 || empty.op != opList && empty.op != opMap {
		return n
	}
	taken := map[string]bool{}
	for _, x := range n.vars {
		for _, body := range n.args[1:] {
			body.takenFor(x, taken)
		}
	}
	if len(taken) < 2 {
		return n
	}
	args := slices.Clone(n.args)
	args[0] = Value{found}.OrValue(Func(FuncDyn, Value{empty})).n
	return n.with(args)
}

// takenFor adds for what n takes the variable x: what is selected from it by name says nothing of
// its type, and what goes through it gives its elements one.
func (n *node) takenFor(x string, taken map[string]bool) {
	for i, a := range n.args {
		if n.binds(i) && slices.Contains(n.vars, x) {
			return
		}
		if a.op != opIdent || a.name != x {
			a.takenFor(x, taken)
			continue
		}
		switch n.op {
		case opSelect, opHas, opOpt, opAnd, opOr, opNot:
		case opMacro:
			taken["a list"], taken["its elements"] = true, true
		case opBinary:
			taken[fmt.Sprint(n.name, i, n.args[1-i].op)] = true
		default:
			taken[fmt.Sprint(n.op, n.name, i)] = true
		}
	}
}

// withoutName needs no name for what is read once, and not in a loop.
func (n *node) withoutName() *node {
	if !n.isQuantifier() || len(n.vars) != 1 || n.args[0].op != opList || len(n.args[0].args) != 1 || n.args[0].args[0].op == opMaybe {
		return n
	}
	named, body := Value{n.args[0].args[0]}, Bool{Value{n.args[1]}}
	if x := n.vars[0]; body.Count(x) == 1 && body.Boolean() && (Reading{Value: Ident(x)}).In(body.Value) {
		return body.Substitute(x, named).n
	}
	return n
}

// OrElse reads v where the conditions that ask for its steps hold, and else another value:
//
//	has(o.a) && has(o.a.b) ? o.a.b : c    o.?a.?b.orValue(c)
//
// It is not ok where they ask for anything else, or not for each step that may be missing.
func (v Value) OrElse(asked Bool, other Value) (out Value, ok bool) {
	terms := asked.n.terms(opAnd)
	optional, met := v.n.optional(terms)
	return Value{optional}.OrValue(other), met > 0 && met == len(terms)
}

// optional is n with optional steps from the first one that a term asks for, and how many of
// the terms it meets; none where a step behind it may be missing, and none asks for it.
func (n *node) optional(terms []*node) (optional *node, met int) {
	if n.op != opSelect && n.op != opIndex {
		return n, 0
	}
	for _, term := range terms {
		if term.function() == FuncHasValue && goesTo(term.args[0], n) {
			return term.args[0], 1
		}
	}
	of, met := n.args[0].optional(terms)
	switch asked := slices.ContainsFunc(terms, n.isAskedBy); {
	case asked:
		met++
	case met == 0 || !n.sure:
		return n, 0
	}
	if n.op == opSelect {
		return Value{of}.Optional(n.name).n, met
	}
	return Value{of}.OptIndex(Value{n.args[1]}).n, met
}

// isAskedBy tells of a term that asks whether a selection is there.
func (n *node) isAskedBy(term *node) bool {
	at := term.askedValue()
	return at != nil && goesTo(at, n)
}

// withoutDefault asks whether a field is there where n has a text stand in for it that n
// compares it with, if that is shorter.
func (n *node) withoutDefault() *node {
	op := n.operator()
	if op != Equals && op != Differs || !n.args[0].isOrValue() || n.args[1].op != opString || !equal(n.args[0].args[1], n.args[1]) {
		return n
	}
	field := n.args[0].args[0]
	if field.op != opOpt || !field.args[0].isSelection() {
		return n
	}
	of := Value{field.args[0]}
	has, is := of.Has(field.name), Value{n.with([]*node{of.Field(field.name).n, n.args[1]})}.AsBool()
	short := Or(Not(has), is)
	if op == Differs {
		short = And(has, is)
	}
	if len(short.String()) >= len(Value{n}.String()) {
		return n
	}
	return short.n
}

// isSelection tells of a variable, or of a field of a selection.
func (n *node) isSelection() bool {
	return n.op == opIdent || n.op == opSelect && n.args[0].isSelection()
}

// unordered is !n.
func (n *node) unordered() *node {
	opposite, ok := n.operator().inverse()
	if !ok && n.op == opBinary && n.args[0].isOrdered() && n.args[1].isOrdered() {
		opposite, ok = n.operator().opposite()
	}
	if ok {
		return newNode(node{op: opBinary, name: string(opposite), args: n.args})
	}
	return not(n)
}

// isOrdered tells of a literal, of data, and of a count: of two of these one is less than
// the other, or they are equal, or not to be compared. What is computed may be no number,
// which has no order.
func (n *node) isOrdered() bool {
	switch n.op {
	case opInt, opUint, opDouble, opString, opIdent:
		return true
	case opMember, opCall:
		return n.function() == FuncSize || n.isOrValue() && n.args[0].isOrdered() && n.args[1].isOrdered()
	}
	variable := n.op == opSelect && n.args[0].op == opIdent && n.args[0].name == "variables"
	for n.op == opSelect || n.op == opOpt || n.op == opIndex || n.op == opOptIdx {
		n = n.args[0]
	}
	return n.op == opIdent && !variable
}

// presence shortens the terms of && that ask what is there, and those of || that ask what
// is not.
type presence struct {
	op         op
	differs    Operator  // from null, or from an empty text, is what is there
	quantifier MacroName // of which an empty list decides the chain as a missing one does
}

func (p presence) short(n *node) *node {
	return p.op.of(p.values(p.joined(p.searched(n.args))))
}

// asked is what a term asks to be there, or nil.
func (p presence) asked(term *node) *node {
	switch {
	case p.op == opAnd:
		return term
	case term.op == opNot:
		return term.args[0]
	case term.operator() == LessEqual: // how !(size(l) > i) is written
		return newNode(node{op: opBinary, name: string(Greater), args: term.args})
	case term.operator() == Equals:
		return newNode(node{op: opBinary, name: string(Differs), args: term.args})
	}
	return nil
}

// asks is the term that asks it.
func (p presence) asks(asked *node) *node {
	if p.op == opOr {
		return not(asked)
	}
	return asked
}

// joined joins the terms that ask for the steps of one path.
func (p presence) joined(args []*node) []*node {
	terms := []*node{args[0]}
	for _, term := range args[1:] {
		last := &terms[len(terms)-1]
		if path := longer(p.asked(*last), p.asked(term)); path != nil {
			*last = p.asks(path)
		} else {
			terms = append(terms, term)
		}
	}
	return terms
}

// longer asks for a path and one more step, where the second node asks for the step and
// the first one for the path; else it is nil.
func longer(path, step *node) *node {
	if path == nil || step == nil || step.function() == FuncHasValue {
		return nil
	}
	optional, next := path.askedFor(), step.askedFor()
	if optional == nil || next == nil || !goesTo(optional, next.args[0]) {
		return nil
	}
	return Value{next.with(append([]*node{optional}, next.args[1:]...))}.HasValue().n
}

// askedValue is what n asks for, a step of a path or an item of a list, or nil.
func (n *node) askedValue() *node {
	if item := n.askedItem(); item != nil {
		return item
	}
	return n.askedFor()
}

// askedItem is l[?i] of size(l) > i, and l[?0] of size(l) != 0; nil for anything else.
func (n *node) askedItem() *node {
	if n.op != opBinary || n.args[1].op != opInt {
		return nil
	}
	of, sized := n.args[0].sized()
	if !sized || n.operator() != Greater && (n.operator() != Differs || n.args[1].lit != int64(0)) {
		return nil
	}
	return Value{of}.OptIndex(Value{n.args[1]}).n
}

// askedFor is the optional selection that n asks for something in, or nil.
//
//	has(o.a)            o.?a
//	'a' in o.m          o.m[?'a']
//	o.?a.?b.hasValue()  o.?a.?b
func (n *node) askedFor() *node {
	switch {
	case n.op == opHas:
		return newNode(node{op: opOpt, name: n.name, args: n.args})
	case n.operator() == In && n.args[1].kind == MapKind && (n.args[0].op == opString || !n.args[0].isLiteral()):
		return newNode(node{op: opOptIdx, args: []*node{n.args[1], n.args[0]}})
	case n.function() == FuncHasValue:
		return n.args[0]
	}
	return nil
}

// goesTo tells that an optional selection goes where another one does: o.?spec.?tls where
// o.spec.tls does.
func goesTo(optional, n *node) bool {
	switch {
	case optional.op == opOpt && n.op == opSelect && n.name == optional.name,
		optional.op == opOptIdx && n.op == opIndex && equal(optional.args[1], n.args[1]):
		return goesTo(optional.args[0], n.args[0])
	}
	return optional.op != opOpt && optional.op != opOptIdx && equal(n, optional)
}

// searched leaves out the terms that ask whether a list is there, or has elements, which a
// later term searches, and finds nothing in where it has none.
func (p presence) searched(args []*node) (terms []*node) {
	for i, term := range args {
		if p.counted(term, args[i+1:]) {
			continue
		}
		list := p.there(term)
		if list == nil || !slices.ContainsFunc(args[i+1:], func(later *node) bool { return p.searches(later, list) }) {
			terms = append(terms, term)
		}
	}
	return terms
}

// counted tells of size(o.l) != 0 before a term that searches o.l.
func (p presence) counted(term *node, later []*node) bool {
	if term.operator() != p.differs || term.args[0].function() != FuncSize || term.args[1].lit != int64(0) {
		return false
	}
	list := term.args[0].args[0]
	return slices.ContainsFunc(later, func(l *node) bool { return l.macro() == p.quantifier && equal(l.args[0], list) })
}

// there is o.l of a term that asks whether it is there, has(o.l), or nil.
func (p presence) there(term *node) *node {
	if asked := p.asked(term); asked != nil && asked.op == opHas {
		return Value{asked.args[0]}.Field(asked.name).n
	}
	return nil
}

// searches tells of a quantifier over a list, or over an empty one where it is missing.
func (p presence) searches(term, list *node) bool {
	if term.macro() != p.quantifier {
		return false
	}
	path := term.args[0].emptyIfMissing()
	return path != nil && path.op == opOpt && goesTo(path, list)
}

// emptyIfMissing is x of x.orValue([]), or nil.
func (n *node) emptyIfMissing() *node {
	if n.isOrValue() && n.args[1].isEmptyList() {
		return n.args[0]
	}
	return nil
}
