package cel

import "slices"

// A Kind is what sort of value there is at run time.
type Kind int

// The kinds; an object is a map. Unknown is any of them.
const (
	Unknown Kind = iota
	BoolKind
	NumberKind
	StringKind
	ListKind
	MapKind
	otherKind // what operators take only to compare it
)

// A KindedShape knows what kind the values of a shape are.
type KindedShape interface {
	Shape
	Kind() Kind
}

// IsTotal tells that v has a value whatever the input: nothing that it reads can
// be missing or null, no function gets what it does not take, and nothing is
// computed that may have no result. Where that is not plain to see, it is false.
func (v Value) IsTotal(s Surroundings) bool {
	g := newGuard(s)
	if len(g.needs(v.n)) > 0 {
		return false
	}
	_, ok := typer{guardContext: g}.of(v.n)
	return ok
}

// A typer finds the kinds of values, as far as the shapes of the request tell.
type typer struct {
	*guardContext
	keys   scoped[*node] // the maps through whose keys variables go; nil of others
	known  *facts
	strict bool // asks too that what is read is there
}

// beneath is t in the body of the macro n, where it goes through list; nil where that
// is another kind of macro.
func (t *typer) beneath(n, list *node) *typer {
	if t == nil || len(n.vars) != 1 || !n.isTest() && n.macro() != MacroMap {
		return nil
	}
	of, ok := t.of(list)
	if !ok || !of.is(ListKind, MapKind) {
		return nil
	}
	in := t.into(n, of)
	return &in
}

// there tells that what n reads of a value is there, where t asks for that: what it
// needs is known.
func (t typer) there(n *node, needs conditions) bool {
	if !t.strict {
		return true
	}
	if _, isKey := t.keyOf(n.args[len(n.args)-1]); !isKey && !t.infer(n.args[0]).data {
		return false
	}
	return !slices.ContainsFunc(needs, func(n *node) bool {
		holds, ok := t.known.of(n)
		return !ok || !holds
	})
}

// A typ is what is known of a value's kind; optional tells that the value is
// wrapped in an optional one, null that it may be null.
type typ struct {
	kind     Kind
	shape    Shape
	optional bool
	null     bool
}

func typeOf(s Shape) typ {
	if k, ok := s.(KindedShape); ok {
		return typ{kind: k.Kind(), shape: s}
	}
	return typ{shape: s}
}

func (t typ) is(kinds ...Kind) bool { return !t.optional && !t.null && slices.Contains(kinds, t.kind) }

// of is the type of n; false where n may be an error for what is there.
func (t typer) of(n *node) (typ, bool) {
	got, ok := t.read(n)
	if got.kind == Unknown && !got.optional {
		got.kind = t.known.kindOf(n)
	}
	return got, ok
}

func (t typer) read(n *node) (typ, bool) {
	switch n.op {
	case opBool:
		return typ{kind: BoolKind}, true
	case opInt, opUint, opDouble:
		return typ{kind: NumberKind}, true
	case opString:
		return typ{kind: StringKind}, true
	case opNull, opBytes:
		return typ{kind: otherKind}, true
	case opIdent:
		return t.ident(n)
	case opSelect, opHas, opOpt:
		return t.selection(n)
	case opIndex, opOptIdx:
		return t.index(n)
	case opAnd, opOr:
		return typ{kind: BoolKind}, t.chain(n)
	case opNot:
		return typ{kind: BoolKind}, t.all(n.args, BoolKind)
	case opCond:
		return t.ternary(n)
	case opBinary:
		return t.binary(n)
	case opMap:
		return typ{kind: MapKind}, len(n.args) == 0
	case opList:
		return t.list(n)
	case opMacro:
		return t.macro(n)
	case opCall, opMember:
		return t.call(n)
	}
	return typ{}, false
}

// all tells that each of ns has a value, of the given kind.
func (t typer) all(ns []*node, kind Kind) bool {
	for _, n := range ns {
		if got, ok := t.of(n); !ok || !got.is(kind) {
			return false
		}
	}
	return true
}

// chain tells that each term of n has a truth value, by what those before it say.
func (t typer) chain(n *node) bool {
	for _, a := range n.args {
		if got, ok := t.of(a); !ok || !got.is(BoolKind) {
			return false
		}
		t.known = t.known.and(a, n.op == opAnd)
	}
	return true
}

func (t typer) ident(n *node) (typ, bool) {
	if b, bound := t.bound.of(n.name); bound {
		if _, isKey := t.keyOf(n); isKey {
			return typ{kind: StringKind}, true
		}
		return typeOf(b.shape), true
	}
	if r, ok := t.root(n); ok {
		return typ{kind: MapKind, shape: r.Shape, null: r.Null && !t.known.isNotNull(n)}, true
	}
	switch n.name {
	case "bool", "int", "uint", "double", "string", "bytes", "list", "map", "null_type": // the types
		return typ{kind: otherKind}, true
	}
	return typ{}, false
}

func (t typer) keyOf(n *node) (*node, bool) {
	if n.op != opIdent {
		return nil, false
	}
	of, _ := t.keys.of(n.name)
	return of, of != nil
}

// selection: that a field is there, needs has seen to. An object that may be null
// has fields, none of which is there, but for the optional selection.
func (t typer) selection(n *node) (typ, bool) {
	if outside, expr, ok := t.variable(n); ok {
		return typer{outside, nil, t.known, t.strict}.of(expr)
	}
	of, ok := t.of(n.args[0])
	if n.op == opHas && ok && t.known.selected(n.args[0]) {
		return typ{kind: BoolKind}, true
	}
	if !ok || of.kind != MapKind || of.optional && n.op != opOpt {
		return typ{}, false
	}
	if n.op == opSelect && t.strict && !t.known.hasField(n.args[0], n.name) && !t.there(n, t.needsField(n.args[0], n.name)) {
		return typ{}, false
	}
	field := typeOf(fieldOf(of.shape, n.name))
	switch n.op {
	case opHas:
		return typ{kind: BoolKind}, true
	case opOpt:
		field.optional = true
		r, isRoot := t.root(n.args[0])
		return field, !isRoot || !r.Null
	}
	return field, true
}

// index: that a literal is within, needs has seen to; a key of the map is.
func (t typer) index(n *node) (out typ, ok bool) {
	of, ok := t.of(n.args[0])
	i, optional := n.args[1], n.op == opOptIdx
	if !ok || !optional && !t.there(n, t.needsIndex(n)) {
		return typ{}, false
	}
	m, isKey := t.keyOf(i)
	switch {
	case of.kind == MapKind && i.op == opString && (optional || !of.optional):
		out = typeOf(fieldOf(of.shape, i.lit.(string)))
	case of.is(ListKind) && i.op == opInt && (optional || i.lit.(int64) >= 0 && t.isList(n.args[0])), of.is(MapKind) && isKey && equal(m, n.args[0]):
		out = typeOf(elemOf(of.shape))
	default:
		return typ{}, false
	}
	out.optional = optional
	return out, true
}

func (t typer) ternary(n *node) (typ, bool) {
	if !t.all(n.args[:1], BoolKind) {
		return typ{}, false
	}
	then, els := t, t
	then.known, els.known = t.known.and(n.args[0], true), t.known.and(n.args[0], false)
	a, ok := then.of(n.args[1])
	b, ok2 := els.of(n.args[2])
	return a.or(b), ok && ok2
}

// or is the type of what is one or the other.
func (t typ) or(u typ) typ {
	if t == u {
		return t
	}
	if t.kind != u.kind || t.optional != u.optional {
		return typ{kind: Unknown}
	}
	t.shape = nil
	return t
}

func (t typer) binary(n *node) (typ, bool) {
	a, ok := t.of(n.args[0])
	b, ok2 := t.of(n.args[1])
	if !ok || !ok2 || a.optional || b.optional {
		return typ{}, false
	}
	truth := typ{kind: BoolKind}
	switch n.operator() {
	case Equals, Differs:
		return truth, true
	case In:
		return truth, b.is(ListKind) || b.is(MapKind) && a.is(StringKind)
	case Less, LessEqual, Greater, GreaterEqual:
		return truth, a.kind == b.kind && a.is(NumberKind, StringKind)
	case Plus:
		return a.or(b), a.kind == b.kind && a.is(StringKind, ListKind)
	}
	return typ{}, false
}

func (t typer) list(n *node) (typ, bool) {
	var elem typ
	for i, a := range n.args {
		e, ok := t.of(a)
		if !ok || a.op == opMaybe {
			return typ{}, false
		}
		if i == 0 {
			elem = e
		}
		elem = elem.or(e)
	}
	if elem.optional {
		elem = typ{}
	}
	return typ{kind: ListKind, shape: kindedList{elem}}, true
}

// A kindedList is a list of which only the elements are known.
type kindedList struct{ t typ }

// Field is none.
func (kindedList) Field(string) (Shape, bool) { return nil, false }

// Elem is the shape of the elements.
func (l kindedList) Elem() Shape { return kindedElem(l) }

// Kind is that of a list.
func (kindedList) Kind() Kind { return ListKind }

// A kindedElem is an element, of which there may be a kind and no shape.
type kindedElem struct{ t typ }

// Field is a field of the element.
func (e kindedElem) Field(name string) (Shape, bool) {
	if e.t.shape == nil {
		return nil, false
	}
	return e.t.shape.Field(name)
}

// Elem is what is in the element.
func (e kindedElem) Elem() Shape { return elemOf(e.t.shape) }

// Kind is that of the element.
func (e kindedElem) Kind() Kind { return e.t.kind }

func (t typer) macro(n *node) (typ, bool) {
	list, ok := t.of(n.args[0])
	if !ok || len(n.vars) != 1 || !list.is(ListKind, MapKind) {
		return typ{}, false
	}
	in := t.into(n, list)
	body, ok := in.of(n.args[1])
	switch n.macro() {
	case MacroAll, MacroExists, MacroExistsOne:
		return typ{kind: BoolKind}, ok && body.is(BoolKind)
	case MacroFilter:
		return list, ok && body.is(BoolKind) && list.is(ListKind)
	case MacroMap:
		if len(n.args) == 2 && !body.optional {
			return typ{kind: ListKind, shape: kindedList{body}}, ok
		}
	}
	return typ{}, false
}

// into is t in the body of the macro n, which goes through a list or a map.
func (t typer) into(n *node, list typ) typer {
	in := t
	in.guardContext = t.inside(n)
	if last := &in.bound[len(in.bound)-1].is; last.shape == nil && list.is(ListKind) { // what its type says of the elements
		last.shape = elemOf(list.shape)
	}
	in.known = t.known.without(n.vars)
	var keys *node
	if len(n.vars) == 1 && list.is(MapKind) {
		keys = n.args[0]
	}
	in.keys = t.keys.in(n, nil, keys)
	return in
}

// call: functions that have a result for all that they take.
func (t typer) call(n *node) (typ, bool) {
	var args []typ
	for _, a := range n.args {
		got, ok := t.of(a)
		if !ok {
			return typ{}, false
		}
		args = append(args, got)
	}
	truth, text := typ{kind: BoolKind}, typ{kind: StringKind}
	texts := !slices.ContainsFunc(args, func(a typ) bool { return !a.is(StringKind) })
	switch n.function() {
	case FuncOrValue:
		if len(args) != 2 || !args[0].optional {
			return typ{}, false
		}
		args[0].optional = false
		return orEmpty(args[0], args[1], n.args[1]), true
	case FuncHasValue:
		return truth, len(args) == 1 && args[0].optional
	case FuncDyn:
		return args[0], true
	case FuncSize:
		return typ{kind: NumberKind}, len(args) == 1 && args[0].is(StringKind, ListKind, MapKind)
	case FuncStartsWith, FuncEndsWith, FuncContains:
		return truth, len(args) == 2 && texts
	case FuncReplace:
		return text, len(args) == 3 && texts
	case FuncMatches:
		return truth, len(args) == 2 && texts && isRegex(n.args[1])
	case FuncLowerASCII, FuncUpperASCII, FuncTrim:
		return text, len(args) == 1 && texts
	case FuncIsQuantity, FuncIsIP, FuncIsCIDR, FuncIsURL, FuncIsSemver:
		return truth, len(args) == 1 && texts
	case FuncType:
		return typ{kind: otherKind}, !args[0].optional
	case FuncString:
		return text, args[0].is(StringKind, NumberKind, BoolKind)
	}
	return typ{}, false
}

// orEmpty is the type of what is there, or of what stands in for it: an empty
// list or map is of the same shape, as no element of it is ever read.
func orEmpty(t, other typ, n *node) typ {
	if t.kind == other.kind && len(n.args) == 0 && (n.op == opList || n.op == opMap) {
		return t
	}
	return t.or(other)
}
