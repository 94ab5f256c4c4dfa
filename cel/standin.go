package cel

import (
	"regexp"
	"slices"
	"strings"
)

// What stands in for a value that is missing, in place of a question:
//
//	has(o.name) && o.name.startsWith('a')    o.?name.orValue('').startsWith('a')
//	has(o.l) && 'a' in o.l                   'a' in o.?l.orValue([])
//	has(o.on) && !o.on                       !o.?on.orValue(true)

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
	term *node
	at   *node
	text bool
}

// value is o.?name of has(o.name), o.?name.hasValue() and o.?name.orValue("") != "", and o.l[?0]
// of size(o.l) > 0.
func (p presence) value(term *node) place {
	if term.operator() == p.differs && isEmptyText(term.args[1]) && term.args[0].isOrValue() && isEmptyText(term.args[0].args[1]) {
		return place{term, term.args[0].args[0], true}
	}
	asked := p.asked(term)
	if asked == nil {
		return place{}
	}
	return place{term: term, at: asked.askedValue()}
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
		out := test.standIn(asked, decides)
		if out == nil {
			continue
		}
		if later[i] = out; term.op == opNot {
			later[i] = not(out)
		}
		return true
	}
	return false
}

// of is the optional selection of what n reads, where it is at the place, or where it is there
// as soon as the place is; nil for others.
func (p place) of(n *node) *node {
	switch {
	case goesTo(p.at, n):
		return p.at
	case p.text || !n.sure || n.op != opSelect:
		return nil
	}
	if of := p.of(n.args[0]); of != nil {
		return Value{of}.Optional(n.name).n
	}
	return nil
}

// standIn is n, a test of the value at a place, with a literal that stands in where there is
// none, and of which the test says what it should; nil where it knows none.
func (n *node) standIn(asked place, is bool) *node {
	if of := asked.of(n); of != nil && !asked.text && n.kind == BoolKind { // else && may be left out that errs
		return Value{of}.OrValue(Lit(is).Value).n
	}
	with := func(i int, literal Value) *node {
		args := slices.Clone(n.args)
		args[i] = Value{asked.of(n.args[i])}.OrValue(literal).n
		return n.with(args)
	}
	if n.operator() == In && asked.of(n.args[1]) != nil && n.args[1].kind == ListKind && !is {
		return with(1, List())
	}
	if len(n.args) != 2 || asked.of(n.args[0]) == nil {
		return nil
	}
	if n.isQuantifier() && is == (n.macro() == MacroAll) {
		switch n.args[0].kind {
		case ListKind:
			return with(0, List())
		case MapKind:
			return with(0, Map())
		}
		return nil
	}
	if of, ok := n.ofText(""); ok && of == is {
		return with(0, String(""))
	}
	for _, own := range n.literals() {
		if of, ok := n.ofLiteral(own); ok && of == is && !asked.text {
			if own.op == opInt || asked.worth(own) {
				return with(0, Value{own})
			}
		}
	}
	return nil
}

// worth tells that a text that stands in is shorter to read than the question that it saves,
// which is one about several steps.
func (p place) worth(literal *node) bool {
	return !p.at.args[0].isSelection() && len(".orValue()")+len(Value{literal}.String()) < len(Value{p.term}.String())
}

// literals are some of which n, a test by integers or by texts, may say one thing or the other:
// small integers, and those of the test itself.
func (n *node) literals() []*node {
	own := []*node{n.args[1]}
	if n.operator() == In && n.args[1].op == opList {
		own = n.args[1].args
	}
	switch {
	case n.op != opBinary:
		return nil
	case areInts(own):
		return append([]*node{Int(0).n, Int(1).n, Int(-1).n}, own...)
	case areTexts(own):
		return own
	}
	return nil
}

// ofLiteral is what n, a test by literals of the same type, says of one.
func (n *node) ofLiteral(x *node) (is, ok bool) {
	if text, isText := x.lit.(string); isText {
		return n.ofText(text)
	}
	if n.operator() == In {
		return slices.ContainsFunc(n.args[1].args, func(y *node) bool { return equal(x, y) }), true
	}
	return Value{foldCompare(n.with([]*node{x, n.args[1]}))}.AsBool().Const()
}

// ofText is what n, a test of a text by literals, says of one.
func (n *node) ofText(text string) (is, ok bool) {
	literal, isText := n.args[1].lit.(string)
	isText = isText && n.args[1].op == opString
	switch n.operator() {
	case Equals:
		return literal == text, isText
	case Differs:
		return literal != text, isText
	case In:
		texts := n.args[1].args
		return slices.ContainsFunc(texts, func(t *node) bool { return t.lit == text }), n.args[1].op == opList && areTexts(texts)
	}
	if !isText || n.op != opMember {
		return false, false
	}
	switch n.function() {
	case FuncStartsWith:
		return strings.HasPrefix(text, literal), true
	case FuncEndsWith:
		return strings.HasSuffix(text, literal), true
	case FuncContains:
		return strings.Contains(text, literal), true
	case FuncMatches:
		re, err := regexp.Compile(literal)
		return err == nil && re.MatchString(text), err == nil
	}
	return false, false
}
