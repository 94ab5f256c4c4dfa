package translate

import (
	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/schema"
)

// A stream is a JMESPath list, kept as a way to go through its elements. CEL
// cannot flatten nested lists before 1.35, but most readers of a list only ask
// whether some or all elements have a property, or how many there are, and that
// nested quantifiers can say.
//
// A stream's source may be missing, which JMESPath projections turn to null. Read
// softly it is then empty; read strictly it is an error.
type stream interface {
	// quantify is: some (exists) or all elements satisfy body.
	quantify(l *lowering, macro string, strict bool, body func(jval) cel.Bool) cel.Bool
	// count is the number of elements, an int.
	count(l *lowering, strict bool) cel.Value
	// list is the elements as one CEL list; false where CEL has no such expression.
	list(l *lowering, strict bool) (cel.Value, bool)
	// null is: the source is missing.
	null() cel.Bool
	// elem is the type of the elements.
	elem() *schema.Type
}

// listOf is the stream of a list value.
type listOf struct {
	v    val
	hint string
}

func (s listOf) source(strict bool) cel.Value {
	switch {
	case s.v.certain() || strict:
		return s.v.expr
	case !s.v.opt.IsZero():
		return s.v.opt.OrValue(cel.List())
	}
	return cel.Cond(s.v.found(), s.v.expr, cel.List())
}

func (s listOf) quantify(l *lowering, macro string, strict bool, body func(jval) cel.Bool) cel.Bool {
	strict = l.reads(s.v, strict)
	over := func(list cel.Value) cel.Bool {
		return l.b.quantify(macro, list, singular(s.hint), func(x cel.Value) cel.Bool { return body(valOf(at(x, s.v.elem()))) })
	}
	if strict || s.v.certain() || !s.v.opt.IsZero() {
		return over(s.source(strict))
	}
	return s.v.soft(macro == "all", cel.Value{}, over)
}

func (s listOf) count(l *lowering, strict bool) cel.Value {
	return s.source(l.reads(s.v, strict)).Size()
}

func (s listOf) list(l *lowering, strict bool) (cel.Value, bool) {
	return s.source(l.reads(s.v, strict)), true
}

// reads notes that a source is read: strictly, which may be an error, or softly
// where what must be there is asked for beforehand.
func (l *lowering) reads(v val, strict bool) bool {
	if !strict || v.certain() {
		return strict
	}
	if l.found != nil {
		*l.found = append(*l.found, v.found())
		return false
	}
	l.errs = true
	return true
}

// strictList is a list that is read as a value, not through a projection: where
// it is missing, reading it is an error.
type strictList struct{ listOf }

func (s strictList) quantify(l *lowering, macro string, _ bool, body func(jval) cel.Bool) cel.Bool {
	return s.listOf.quantify(l, macro, true, body)
}

func (s strictList) count(l *lowering, _ bool) cel.Value { return s.listOf.count(l, true) }

func (s strictList) list(l *lowering, _ bool) (cel.Value, bool) { return s.listOf.list(l, true) }

func (s strictList) null() cel.Bool { return cel.Not(s.v.shaped()) }

func (s listOf) null() cel.Bool { return cel.Not(s.v.found()) }

func (s listOf) elem() *schema.Type { return s.v.elem() }

// concat is several streams one after the other. It is never null.
type concat []stream

func (s concat) quantify(l *lowering, macro string, _ bool, body func(jval) cel.Bool) cel.Bool {
	conds := make([]cel.Bool, len(s))
	for i, part := range s {
		conds[i] = part.quantify(l, macro, false, body)
	}
	if macro == "all" {
		return cel.And(conds...)
	}
	return cel.Or(conds...)
}

func (s concat) count(l *lowering, _ bool) cel.Value {
	if len(s) == 0 {
		return cel.Int(0)
	}
	sum := s[0].count(l, false)
	for _, part := range s[1:] {
		sum = sum.Plus(part.count(l, false))
	}
	return sum
}

func (s concat) list(l *lowering, _ bool) (cel.Value, bool) {
	if len(s) == 0 {
		return cel.List(), true
	}
	var sum cel.Value
	for i, part := range s {
		list, ok := part.list(l, false)
		if !ok {
			return cel.Value{}, false
		}
		if i == 0 {
			sum = list
		} else {
			sum = sum.Plus(list)
		}
	}
	return sum, true
}

func (s concat) null() cel.Bool { return cel.False() }

func (s concat) elem() *schema.Type {
	if len(s) == 0 {
		return anyType()
	}
	t := s[0].elem()
	for _, part := range s[1:] {
		if part.elem() != t {
			return anyType()
		}
	}
	return t
}

// inParts applies f to a stream, or to each part of one that is put together: the
// parts keep the types of their elements.
func inParts(s stream, f func(stream) stream) stream {
	switch s := s.(type) {
	case concat:
		out := make(concat, len(s))
		for i, part := range s {
			out[i] = inParts(part, f)
		}
		return out
	case branch:
		return branch{s.c, inParts(s.then, f), inParts(s.els, f)}
	}
	return f(s)
}

// single is one value as a list.
type single struct{ j jval }

func (s single) quantify(_ *lowering, _ string, _ bool, body func(jval) cel.Bool) cel.Bool {
	return body(s.j)
}

func (s single) count(*lowering, bool) cel.Value { return cel.Int(1) }

func (s single) list(l *lowering, _ bool) (cel.Value, bool) {
	v, ok := l.expr(s.j)
	return cel.List(v), ok
}

func (s single) null() cel.Bool { return cel.False() }

func (s single) elem() *schema.Type { return s.j.typ() }

// filtered is the elements that satisfy keep.
type filtered struct {
	of   stream
	keep func(*lowering, jval) cel.Bool
}

func (s filtered) quantify(l *lowering, macro string, strict bool, body func(jval) cel.Bool) cel.Bool {
	return s.of.quantify(l, macro, strict, func(x jval) cel.Bool {
		if macro == "all" {
			return cel.Implies(s.keep(l, x), body(x))
		}
		return cel.And(s.keep(l, x), body(x))
	})
}

func (s filtered) count(l *lowering, strict bool) cel.Value {
	if list, ok := s.list(l, strict); ok {
		return list.Size()
	}
	return countBy(l, s, strict)
}

func (s filtered) list(l *lowering, strict bool) (cel.Value, bool) {
	src, ok := s.of.list(l, strict)
	if !ok {
		return src, false
	}
	kept := l.b.filter(src, hintOf(s.of), func(x cel.Value) cel.Bool { return s.keep(l, valOf(at(x, s.of.elem()))) })
	return kept, true
}

func (s filtered) null() cel.Bool { return s.of.null() }

func (s filtered) elem() *schema.Type { return s.of.elem() }

// mapped is f of each element, without those for which it is missing or null.
type mapped struct {
	l  *lowering
	of stream
	f  func(*lowering, jval) jval
}

func (s mapped) quantify(l *lowering, macro string, strict bool, body func(jval) cel.Bool) cel.Bool {
	return s.of.quantify(l, macro, strict, func(x jval) cel.Bool {
		y := s.f(l, x)
		found := l.present(y)
		if macro == "all" {
			return cel.Implies(found, body(y.settled()))
		}
		return cel.And(found, body(y.settled()))
	})
}

func (s mapped) count(l *lowering, strict bool) cel.Value {
	src, ok := s.of.list(l, strict)
	if !ok {
		return countBy(l, s, strict)
	}
	return s.kept(l, src).Size()
}

func (s mapped) kept(l *lowering, src cel.Value) cel.Value {
	if p := l.present(s.f(l, valOf(at(cel.Ident("x"), s.of.elem())))); p.IsTrue() {
		return src
	}
	return l.b.filter(src, hintOf(s.of), func(x cel.Value) cel.Bool {
		return l.present(s.f(l, valOf(at(x, s.of.elem()))))
	})
}

func (s mapped) list(l *lowering, strict bool) (cel.Value, bool) {
	src, ok := s.of.list(l, strict)
	if !ok {
		return src, false
	}
	good := true
	out := l.b.mapped(s.kept(l, src), hintOf(s.of), func(x cel.Value) cel.Value {
		y, ok := l.expr(s.f(l, valOf(at(x, s.of.elem()))).settled())
		good = good && ok
		return y
	})
	return out, good
}

func (s mapped) null() cel.Bool { return s.of.null() }

func (s mapped) elem() *schema.Type {
	probe := s.f(s.l, valOf(at(cel.Ident("x"), s.of.elem())))
	return probe.typ()
}

// flat is the elements of the lists that f gives for each element, one after the
// other.
type flat struct {
	l  *lowering
	of stream
	f  func(*lowering, jval) stream
}

func (s flat) quantify(l *lowering, macro string, strict bool, body func(jval) cel.Bool) cel.Bool {
	return s.of.quantify(l, macro, strict, func(x jval) cel.Bool {
		return s.f(l, x).quantify(l, macro, false, body)
	})
}

func (s flat) count(l *lowering, strict bool) cel.Value { return countBy(l, s, strict) }

func (s flat) list(l *lowering, strict bool) (cel.Value, bool) {
	if !l.release.Has("flatten") {
		return cel.Value{}, false
	}
	src, ok := s.of.list(l, strict)
	if !ok {
		return src, false
	}
	good := true
	lists := l.b.mapped(src, hintOf(s.of), func(x cel.Value) cel.Value {
		inner, ok := s.f(l, valOf(at(x, s.of.elem()))).list(l, false)
		good = good && ok
		return inner
	})
	return lists.Call("flatten"), good
}

func (s flat) null() cel.Bool { return s.of.null() }

func (s flat) elem() *schema.Type {
	return s.f(s.l, valOf(at(cel.Ident("x"), s.of.elem()))).elem()
}

// countBy adds up the counts of the parts of a nested stream.
func countBy(l *lowering, s stream, strict bool) cel.Value {
	switch s := s.(type) {
	case flat:
		if src, ok := s.of.list(l, strict); ok {
			return l.b.mapped(src, hintOf(s.of), func(x cel.Value) cel.Value {
				return s.f(l, valOf(at(x, s.of.elem()))).count(l, false)
			}).Call("sum")
		}
		if outer, ok := s.of.(flat); ok {
			inner := flat{l: l, of: outer.of, f: func(l *lowering, x jval) stream { return flat{l: l, of: outer.f(l, x), f: s.f} }}
			return countBy(l, inner, strict)
		}
	case filtered:
		if outer, ok := s.of.(flat); ok {
			inner := flat{l: l, of: outer.of, f: func(l *lowering, x jval) stream { return filtered{of: outer.f(l, x), keep: s.keep} }}
			return countBy(l, inner, strict)
		}
	case mapped:
		if outer, ok := s.of.(flat); ok {
			inner := flat{l: l, of: outer.of, f: func(l *lowering, x jval) stream { return mapped{l: l, of: outer.f(l, x), f: s.f} }}
			return countBy(l, inner, strict)
		}
	}
	panic(l.unsupported("counting the elements of this projection"))
}

// entries is the keys, or the values, of a map.
type entries struct {
	v      val
	values bool
	// given tells that they are those of a function's argument: where the map is
	// missing that is an error, and nothing takes it for null.
	given bool
}

func (s entries) source(strict bool) cel.Value {
	src := s.v.expr
	if !strict && !s.v.certain() {
		if s.v.opt.IsZero() {
			src = cel.Cond(s.v.found(), s.v.expr, cel.Map())
		} else {
			src = s.v.opt.OrValue(cel.Map())
		}
	}
	if s.v.kind() == schema.Object { // the type checker knows no keys of an object type
		src = dyn(src)
	}
	return src
}

func (s entries) of(src, key cel.Value) jval {
	if s.values {
		return valOf(at(src.Index(key), s.v.elem()))
	}
	return valOf(at(key, stringType()))
}

func (s entries) quantify(l *lowering, macro string, strict bool, body func(jval) cel.Bool) cel.Bool {
	src := s.source(l.reads(s.v, strict || s.given))
	return l.b.quantify(macro, src, "key", func(k cel.Value) cel.Bool { return body(s.of(src, k)) })
}

func (s entries) count(l *lowering, strict bool) cel.Value {
	return s.source(l.reads(s.v, strict || s.given)).Size()
}

func (s entries) list(l *lowering, strict bool) (cel.Value, bool) {
	src := s.source(l.reads(s.v, strict || s.given))
	return l.b.mapped(src, "key", func(k cel.Value) cel.Value {
		if s.values {
			return src.Index(k)
		}
		return k
	}), true
}

func (s entries) null() cel.Bool {
	if s.given {
		return cel.False()
	}
	return cel.Not(s.v.found())
}

func (s entries) elem() *schema.Type {
	if s.values {
		return s.v.elem()
	}
	return stringType()
}

func hintOf(s stream) string {
	switch s := s.(type) {
	case listOf:
		return singular(s.hint)
	case filtered:
		return hintOf(s.of)
	case mapped:
		return hintOf(s.of)
	case concat:
		if len(s) > 0 {
			return hintOf(s[0])
		}
	}
	return "item"
}

// orEmpty is a stream whose missing source counts as an empty list.
type orEmpty struct{ stream }

func (s orEmpty) quantify(l *lowering, macro string, _ bool, body func(jval) cel.Bool) cel.Bool {
	return s.stream.quantify(l, macro, false, body)
}

func (s orEmpty) count(l *lowering, _ bool) cel.Value { return s.stream.count(l, false) }

func (s orEmpty) list(l *lowering, _ bool) (cel.Value, bool) { return s.stream.list(l, false) }

func (s orEmpty) null() cel.Bool { return cel.False() }

// branch is one stream or another.
type branch struct {
	c         cel.Bool
	then, els stream
}

func (s branch) quantify(l *lowering, macro string, strict bool, body func(jval) cel.Bool) cel.Bool {
	return cel.CondBool(s.c, s.then.quantify(l, macro, strict, body), s.els.quantify(l, macro, strict, body))
}

func (s branch) count(l *lowering, strict bool) cel.Value {
	return cel.Cond(s.c, s.then.count(l, strict), s.els.count(l, strict))
}

func (s branch) list(l *lowering, strict bool) (cel.Value, bool) {
	a, ok := s.then.list(l, strict)
	b, ok2 := s.els.list(l, strict)
	if !ok || !ok2 {
		return cel.Value{}, false
	}
	return cel.Cond(s.c, a, b), true
}

func (s branch) null() cel.Bool { return cel.CondBool(s.c, s.then.null(), s.els.null()) }

func (s branch) elem() *schema.Type { return concat{s.then, s.els}.elem() }

// guarded is a stream that counts only where a value is found. Read strictly, it
// is an error where the value is missing; softly it is then null.
type guarded struct {
	stream
	v    val
	soft bool
}

func (s guarded) quantify(l *lowering, macro string, strict bool, body func(jval) cel.Bool) cel.Bool {
	inner := s.stream.quantify(l, macro, strict, body)
	switch {
	case s.asIs(l, strict):
		return inner
	case macro == "all":
		return cel.Implies(s.v.found(), inner)
	}
	return cel.And(s.v.found(), inner)
}

// asIs tells that the elements are read without asking for v: where null is an
// error, and where a missing v is one.
func (s guarded) asIs(l *lowering, strict bool) bool {
	if strict {
		l.reads(s.v, true)
	}
	return strict || !s.soft
}

func (s guarded) count(l *lowering, strict bool) cel.Value {
	n := s.stream.count(l, strict)
	if s.asIs(l, strict) {
		return n
	}
	return cel.Cond(s.v.found(), n, cel.Int(0))
}

func (s guarded) list(l *lowering, strict bool) (cel.Value, bool) {
	list, ok := s.stream.list(l, strict)
	if s.asIs(l, strict) || !ok {
		return list, ok
	}
	return cel.Cond(s.v.found(), list, cel.List()), true
}

func (s guarded) null() cel.Bool {
	if s.soft {
		return cel.Or(cel.Not(s.v.found()), s.stream.null())
	}
	return s.stream.null()
}
