package cel

import "slices"

// What orValue and or mean on a value that is not optional differs between the
// releases of Kubernetes: up to 1.36 it is the value, and since 1.37, whose API
// server has a newer CEL library, it is an error. What is known here of each value
// is whether it is optional.

// strictOptionals is the first release in which orValue and or of a value that is
// not optional are errors.
const strictOptionals Release = 37

// optionality says whether a value is optional.
type optionality int

const (
	unclear  optionality = iota
	plain                // not optional, nor is anything in it
	optional             // and what may be in it is plain
	opaque               // optional, and nothing is known of what may be in it
)

func (o optionality) isOptional() bool { return o == optional || o == opaque }

// inside is the optionality of an optional value's content.
func (o optionality) inside() optionality {
	if o == optional {
		return plain
	}
	return unclear
}

// within is the optionality of an optional value with the content o.
func (o optionality) within() optionality {
	if o == plain {
		return optional
	}
	return opaque
}

// WithoutPlainOptionals is v with x in the place of x.orValue(y) where x is a value
// that is not optional: that is what it means up to 1.36. What v reads as
// variables.name is looked up; all else that it does not bind is data, in which
// nothing is optional.
func (v Value) WithoutPlainOptionals(variables func(name string) (Value, bool)) Value {
	return Value{newOptionals(variables).rewrite(v.n, nil)}
}

// WithoutPlainOptionals is a boolean to the type checker too, which knows less of x
// than of x.orValue(true).
func (b Bool) WithoutPlainOptionals(variables func(name string) (Value, bool)) Bool {
	return Bool{Value{newOptionals(variables).condition(b.n)}}
}

func (o *optionals) condition(n *node) *node {
	m := o.rewrite(n, nil)
	switch {
	case m == n || m.isBool():
		return m
	case n.op == opCond:
		return m.with([]*node{m.args[0], o.condition(n.args[1]), o.condition(n.args[2])})
	case n.isOrValue():
		return Value{m}.Eq(True().Value).n
	}
	return m
}

type optionals struct {
	variables func(name string) (Value, bool)
	known     map[string]optionality // of variables.name
}

func newOptionals(variables func(name string) (Value, bool)) *optionals {
	return &optionals{variables: variables, known: map[string]optionality{}}
}

func (o *optionals) rewrite(n *node, bound scoped[optionality]) *node {
	if n == nil {
		return n
	}
	n = n.each(func(i int, a *node) *node { return o.rewrite(a, o.inside(n, i, bound)) })
	if n.isOrValue() && o.of(n.args[0], bound) == plain {
		return n.args[0]
	}
	return n
}

// isOrValue tells of x.orValue(y).
func (n *node) isOrValue() bool {
	return n.function() == FuncOrValue && len(n.args) == 2
}

// visit calls f for n and its parts with the variables that are bound there.
func (o *optionals) visit(n *node, bound scoped[optionality], f func(*node, scoped[optionality])) {
	if n == nil {
		return
	}
	f(n, bound)
	for i, a := range n.args {
		o.visit(a, o.inside(n, i, bound), f)
	}
}

// inside is what is bound in the part i of n.
func (o *optionals) inside(n *node, i int, bound scoped[optionality]) scoped[optionality] {
	if !n.binds(i) {
		return bound
	}
	return boundBy(n, o.of(n.args[0], bound), bound)
}

// boundBy adds the variables of the macro n, which loops over or looks into a value.
func boundBy(n *node, elem optionality, bound scoped[optionality]) scoped[optionality] {
	switch {
	case n.macro() == MacroOptMap || n.macro() == MacroOptFlatMap:
		elem = elem.inside()
	case elem != plain:
		elem = unclear
	}
	return bound.in(n, plain, elem)
}

// of is the optionality of the value of n.
func (o *optionals) of(n *node, bound scoped[optionality]) optionality {
	switch n.op {
	case opIdent:
		if of, ok := bound.of(n.name); ok {
			return of
		}
		return plain
	case opSelect:
		if of, ok := o.variable(n, bound); ok {
			return of
		}
		return o.of(n.args[0], bound) // of an optional value, it is optional
	case opIndex:
		return o.of(n.args[0], bound)
	case opOpt, opOptIdx:
		if of := o.of(n.args[0], bound); of == plain || of == optional {
			return optional
		}
		return opaque
	case opMaybe:
		return o.of(n.args[0], bound).inside()
	case opCond:
		return either(o.of(n.args[1], bound), o.of(n.args[2], bound))
	case opMember:
		return o.method(n, bound)
	case opCall:
		switch n.function() {
		case FuncOptionalNone:
			return optional
		case FuncOptionalOf, FuncOptionalOfNonZeroValue:
			if len(n.args) == 1 {
				return o.of(n.args[0], bound).within()
			}
		case FuncSize, FuncType, FuncInt, FuncUint, FuncDouble, FuncString, FuncBool:
			return plain
		case FuncOptionalUnwrap:
			return unclear
		}
	case opMacro:
		return o.macro(n, bound)
	case opHas, opAnd, opOr, opNot:
		return plain
	case opBinary:
		if n.prec() == precRelation {
			return plain
		}
	}
	return o.whole(n, bound)
}

func either(a, b optionality) optionality {
	switch {
	case a == b:
		return a
	case a.isOptional() && b.isOptional():
		return opaque
	}
	return unclear
}

// whole is plain for what is made of plain parts only.
func (o *optionals) whole(n *node, bound scoped[optionality]) optionality {
	if slices.ContainsFunc(n.args, func(a *node) bool { return o.of(a, bound) != plain }) {
		return unclear
	}
	return plain
}

// variable is the optionality of variables.name.
func (o *optionals) variable(n *node, bound scoped[optionality]) (of optionality, ok bool) {
	v, ok := n.composed(o.variables)
	if _, hidden := bound.of("variables"); hidden || !ok {
		return unclear, false
	}
	if _, done := o.known[n.name]; !done {
		o.known[n.name] = unclear // for one that reads itself, which no API server takes
		o.known[n.name] = o.of(v, nil)
	}
	return o.known[n.name], true
}

func (o *optionals) method(n *node, bound scoped[optionality]) optionality {
	of := o.of(n.args[0], bound)
	switch n.function() {
	case FuncOrValue:
		if of.isOptional() {
			return either(of.inside(), o.of(n.args[1], bound))
		}
		return of
	case FuncOr:
		return either(of, o.of(n.args[1], bound))
	case FuncValue:
		return of.inside()
	case FuncHasValue, FuncSize, FuncStartsWith, FuncEndsWith, FuncMatches, FuncContains:
		return plain
	case FuncFirst, FuncLast:
		return of.within()
	case FuncValidate: // of a format
		return optional
	case FuncUnwrapOpt:
		return unclear
	}
	return o.whole(n, bound)
}

func (o *optionals) macro(n *node, bound scoped[optionality]) optionality {
	list := o.of(n.args[0], bound)
	body := func() optionality { return o.of(n.args[len(n.args)-1], boundBy(n, list, bound)) }
	switch n.macro() {
	case MacroAll, MacroExists, MacroExistsOne, MacroExistsOneNew:
		return plain
	case MacroFilter, MacroSortBy:
		return list
	case MacroOptMap:
		return body().within()
	case MacroOptFlatMap:
		return either(optional, body())
	}
	if body() == plain { // what makes a list or a map of values
		return plain
	}
	return unclear
}

// What a call means has changed with a few releases, since each brought another
// version of the CEL library. They were found by comparing the library's sources,
// from v0.17.8 (Kubernetes 1.30) to v0.29.2 (1.37).

// A Change is a call that means one thing before a release and another from it on.
type Change struct {
	Call  Value
	Since Release
}

// Changes are the calls of v that do not mean the same in all releases from oldest
// to the latest. What v reads as variables.name is looked up; all else that it does
// not bind is data.
func (v Value) Changes(oldest Release, variables func(name string) (Value, bool)) []Change {
	var out []Change
	o := newOptionals(variables)
	o.visit(v.n, nil, func(n *node, bound scoped[optionality]) {
		if since := o.changed(n, bound); since > oldest {
			out = append(out, Change{Value{n}, since})
		}
	})
	return out
}

// changed is the release with which the meaning of the call n has changed, or the
// zero release.
func (o *optionals) changed(n *node, bound scoped[optionality]) Release {
	if n.op != opMember {
		return 0
	}
	switch n.function() {
	case FuncOrValue, FuncOr:
		if len(n.args) == 2 && !o.of(n.args[0], bound).isOptional() {
			return strictOptionals
		}
	case FuncIndexOf, FuncLastIndexOf:
		switch {
		case len(n.args) == 3 && !n.args[1].isFilled():
			return 37 // '' beyond the end is found at the end: before, at the offset
		case n.args[0].op != opList && (len(n.args) == 3 || !n.args[0].isFilled()):
			return 32 // nothing is found in '', or beyond the end: before, an error
		}
	}
	return 0
}

// isFilled tells of a text that is not empty.
func (n *node) isFilled() bool { return n.op == opString && n.lit != "" }
