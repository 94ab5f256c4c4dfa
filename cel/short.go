package cel

import (
	"regexp"
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
//
// The two are the same for any o, also for one with other values on the way.
func (v Value) Short() Value {
	computes := false // of double('NaN') no order has an opposite
	v.Calls(func(name string, _ int) { computes = computes || name == string(FuncDouble) })
	return v.Rewrite(func(v Value) Value {
		switch v.n.op {
		case opNot:
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
			return Value{v.n.withDefault()}
		case opMacro:
			return Value{v.n.withoutName()}
		}
		return v
	})
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

// withDefault reads what n asks for and reads, or a literal in its place.
func (n *node) withDefault() *node {
	asked, read, other := n.args[0], n.args[1], n.args[2]
	switch {
	case !other.isLiteral():
	case asked.function() == FuncHasValue && equal(asked.args[0].selected().n, read):
		return Value{asked.args[0]}.OrValue(Value{other}).n
	case asked.op == opHas && asked.args[0].isSelection() && equal(Value{asked.args[0]}.Field(asked.name).n, read):
		return Value{asked.args[0]}.Opt(asked.name).OrValue(Value{other}).n
	}
	return n
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
	if path == nil || step == nil || step.op != opHas {
		return nil
	}
	var optional *node
	switch {
	case path.op == opHas && equal(step.args[0], newNode(node{op: opSelect, name: path.name, args: path.args})):
		optional = newNode(node{op: opOpt, name: path.name, args: path.args})
	case path.function() == FuncHasValue && goesTo(path.args[0], step.args[0]):
		optional = path.args[0]
	default:
		return nil
	}
	return Value{newNode(node{op: opOpt, name: step.name, args: []*node{optional}})}.HasValue().n
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

// values leaves out the terms that ask whether a value is there beside one that tests it, where
// some literal in its place decides the chain as a value that is missing does.
func (p presence) values(args []*node) []*node {
	args = slices.Clone(args)
	for i := 0; i < len(args); {
		if asked := p.value(args[i]); asked.at != nil && (p.defaulted(args[i+1:], asked) || p.defaulted(args[:i], asked)) {
			args = slices.Delete(args, i, i+1)
			continue
		}
		i++
	}
	return args
}

// place is where a term asks whether a value is there; at is nil for none. Of a text, the
// term may ask for one that is not empty.
type place struct {
	at   *node
	text bool
}

// value is o.?name of has(o.name), o.?name.hasValue() and o.?name.orValue("") != "".
func (p presence) value(term *node) place {
	if term.operator() == p.differs && isEmptyText(term.args[1]) && term.args[0].isOrValue() && isEmptyText(term.args[0].args[1]) {
		return place{term.args[0].args[0], true}
	}
	asked := p.asked(term)
	switch {
	case asked == nil:
	case asked.op == opHas:
		return place{at: newNode(node{op: opOpt, name: asked.name, args: asked.args})}
	case asked.function() == FuncHasValue:
		return place{at: asked.args[0]}
	}
	return place{}
}

func isEmptyText(n *node) bool { return n.op == opString && n.lit == "" }

// defaulted puts a literal where the first term that tests the value has none, if that
// decides the chain.
func (p presence) defaulted(later []*node, asked place) bool {
	for i, term := range later {
		test, decides := term, p.op == opOr
		if term.op == opNot {
			test, decides = term.args[0], !decides
		}
		if len(test.args) != 2 || !goesTo(asked.at, test.args[0]) {
			continue
		}
		stand, ok := test.emptyText(decides)
		if !ok && !asked.text {
			stand, ok = test.number(decides)
		}
		if !ok {
			continue
		}
		args := slices.Clone(test.args)
		args[0] = Value{asked.at}.OrValue(stand).n
		if later[i] = test.with(args); term.op == opNot {
			later[i] = not(later[i])
		}
		return true
	}
	return false
}

// number is one of which n, a test by integers, says what it should: a small one, or one of the
// test's own; false for none.
func (n *node) number(is bool) (Value, bool) {
	own := []*node{n.args[1]}
	if n.operator() == In && n.args[1].op == opList {
		own = n.args[1].args
	}
	if n.op != opBinary || !areInts(own) {
		return Value{}, false
	}
	for _, x := range append([]*node{Int(0).n, Int(1).n, Int(-1).n}, own...) {
		of := slices.ContainsFunc(own, func(y *node) bool { return equal(x, y) })
		if n.operator() != In {
			of = Value{foldCompare(n.with([]*node{x, n.args[1]}))}.AsBool().IsTrue()
		}
		if of == is {
			return Value{x}, true
		}
	}
	return Value{}, false
}

// emptyText is the empty text, if n, a test by texts, says of it what it should.
func (n *node) emptyText(is bool) (Value, bool) {
	of, ok := n.ofEmptyText()
	return String(""), ok && of == is
}

// ofEmptyText is what a test of a text by literals gives for an empty one.
func (n *node) ofEmptyText() (is, ok bool) {
	literal, isText := n.args[1].lit.(string)
	isText = isText && n.args[1].op == opString
	switch n.operator() {
	case Equals:
		return literal == "", isText
	case Differs:
		return literal != "", isText
	case In:
		texts := n.args[1].args
		return slices.ContainsFunc(texts, isEmptyText), n.args[1].op == opList && areTexts(texts)
	}
	if !isText || n.op != opMember {
		return false, false
	}
	switch n.function() {
	case FuncStartsWith, FuncEndsWith, FuncContains:
		return literal == "", true
	case FuncMatches:
		re, err := regexp.Compile(literal)
		return err == nil && re.MatchString(""), err == nil
	}
	return false, false
}
