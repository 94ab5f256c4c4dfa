package translate

import (
	"slices"

	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/schema"
)

// A sequence is a JMESPath list, kept as a way to go through its elements. CEL
// cannot flatten nested lists before 1.35, but most readers of a list only ask
// whether some or all elements have a property, or how many there are, and that
// nested quantifiers can say.
//
// A sequence's source may be missing, which JMESPath projections turn to null. Read
// softly it is then empty; read strictly it is an error.
type sequence interface {
	// quantify is: some (exists) or all elements satisfy body.
	quantify(l *lowering, q cel.Quantifier, strict bool, body func(operand) cel.Bool) cel.Bool
	// count is the number of elements, an int.
	count(l *lowering, strict bool) cel.Value
	// list is the elements as one CEL list; false where CEL has no such expression.
	list(l *lowering, strict bool) (cel.Value, bool)
	// null is: the source is missing.
	null() cel.Bool
	// elem is the type of the elements.
	elem() *schema.Type
	// ordered tells that the order of the elements is not that of a map.
	ordered() bool
}

// listOf is the sequence of a list value.
type listOf struct {
	v    place
	hint string
}

func (s listOf) source(strict bool) cel.Value {
	switch {
	case strict:
		return s.v.orNull()
	case s.v.certain():
		return s.v.expr
	case !s.v.opt.IsZero():
		return s.v.opt.OrValue(cel.List())
	}
	return cel.Cond(s.v.found(), s.v.expr, cel.List())
}

func (s listOf) quantify(l *lowering, q cel.Quantifier, strict bool, body func(operand) cel.Bool) cel.Bool {
	return s.through(l, q, l.reads(s.v, strict), body)
}

func (s listOf) through(l *lowering, q cel.Quantifier, strict bool, body func(operand) cel.Bool) cel.Bool {
	over := func(list cel.Value) cel.Bool {
		return l.binders.Quantify(q, list, singular(s.hint), func(x cel.Value) cel.Bool { return l.perLoop(x, func() cel.Bool { return body(elementOf(s, x)) }) })
	}
	if strict || s.v.certain() || !s.v.opt.IsZero() {
		return over(s.source(strict))
	}
	return s.v.soft(q == cel.ForAll, cel.Value{}, over)
}

func (s listOf) count(l *lowering, strict bool) cel.Value {
	return s.source(l.reads(s.v, strict)).Size()
}

func (s listOf) list(l *lowering, strict bool) (cel.Value, bool) {
	return s.source(l.reads(s.v, strict)), true
}

// reads notes that a source is read, which is an error where nothing is there if it is read
// strictly.
func (l *lowering) reads(v place, strict bool) bool {
	if strict {
		l.need(v.found())
	}
	return strict
}

// strictList is a list that is read as a value, not through a projection: where
// it is missing, reading it is an error.
type strictList struct{ listOf }

func (s strictList) quantify(l *lowering, q cel.Quantifier, _ bool, body func(operand) cel.Bool) cel.Bool {
	l.need(s.v.keysFound())
	return s.through(l, q, true, body)
}

func (s strictList) count(l *lowering, _ bool) cel.Value {
	l.need(s.v.keysFound())
	return s.source(true).Size()
}

func (s strictList) list(l *lowering, _ bool) (cel.Value, bool) {
	l.need(s.v.keysFound())
	return s.source(true), true
}

func (s strictList) null() cel.Bool { return cel.Not(s.v.shaped()) }

func (s listOf) null() cel.Bool { return cel.Not(s.v.found()) }

func (s listOf) elem() *schema.Type { return s.v.elem() }

func (s listOf) ordered() bool { return true }

// concat is several sequences one after the other. It is never null.
type concat []sequence

func (s concat) quantify(l *lowering, q cel.Quantifier, _ bool, body func(operand) cel.Bool) cel.Bool {
	conds := make([]cel.Bool, len(s))
	for i, part := range s {
		conds[i] = part.quantify(l, q, false, body)
	}
	if q == cel.ForAll {
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
			sum = sum.Plus(dyn(list)) // to the type checker, elements of different fields are of different types
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

func (s concat) ordered() bool {
	return !slices.ContainsFunc(s, func(part sequence) bool { return !part.ordered() })
}

// inParts applies f to a sequence, or to each part of one that is put together: the
// parts keep the types of their elements.
func inParts(s sequence, f func(sequence) sequence) sequence {
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
type single struct{ j operand }

func (s single) quantify(_ *lowering, _ cel.Quantifier, _ bool, body func(operand) cel.Bool) cel.Bool {
	return body(s.j)
}

func (s single) count(*lowering, bool) cel.Value { return cel.Int(1) }

func (s single) list(l *lowering, strict bool) (cel.Value, bool) {
	if s.j.form == sequenceForm { // null where it is missing, and no error
		v, ok := s.j.s.list(l, strict)
		return cel.List(v), ok
	}
	v, ok := l.expr(s.j)
	return cel.List(v), ok
}

func (s single) null() cel.Bool { return cel.False() }

func (s single) elem() *schema.Type { return s.j.typ() }

func (s single) ordered() bool { return s.j.ordered() }

func hintOf(s sequence) string {
	switch s := s.(type) {
	case listOf:
		return singular(s.hint)
	case filtered:
		return hintOf(s.of)
	case nonNull:
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
