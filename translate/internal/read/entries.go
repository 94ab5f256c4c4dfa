package read

import (
	"slices"

	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/schema"
)

// Entries is the keys, or the values, of a map.
type Entries struct {
	V      Place
	Values bool
	// Given tells that they are those of a function's argument: where the map is
	// missing that is an error, and nothing takes it for null.
	Given bool
}

func (s Entries) source(strict bool) cel.Value {
	return s.keyed(s.V.source(strict, cel.Map()))
}

// keyed is the map as one whose keys are not known when compiling: the type checker
// knows no keys of an object type.
func (s Entries) keyed(src cel.Value) cel.Value {
	if s.V.Kind() == schema.Object {
		return Dyn(src)
	}
	return src
}

// of is the key of an entry, or its value: whoever has a key has the map.
func (s Entries) of(key cel.Value) Operand {
	if s.Values {
		return ElementOf(s, s.keyed(s.V.Expr).Index(key))
	}
	return ValueOf(key, StringType())
}

// Quantify implements Sequence.
func (s Entries) Quantify(l *Lowering, q cel.Quantifier, strict bool, body func(Operand) cel.Bool) cel.Bool {
	src := s.source(strict || s.Given)
	asked := l.Binders.Quantify(q, src, "key", func(k cel.Value) cel.Bool { return body(s.of(k)) })
	if s.V.Kind() != schema.Object {
		return asked
	}
	return asked.AsksKeys(src, func(name string) cel.Bool {
		if _, known := s.V.Typ.Fields[name]; known && cel.Equal(src, Dyn(s.V.Expr)) {
			return s.V.Expr.Has(name)
		}
		return src.Has(name)
	})
}

// Count implements Sequence.
func (s Entries) Count(_ *Lowering, strict bool) cel.Value {
	return s.source(strict || s.Given).Size()
}

// List implements Sequence.
func (s Entries) List(l *Lowering, strict bool) (cel.Value, bool) {
	src := s.source(strict || s.Given)
	return l.Binders.Map(src, "key", func(k cel.Value) cel.Value {
		if s.Values {
			return s.keyed(s.V.Expr).Index(k)
		}
		return k
	}), true
}

// Demands implements Sequence.
func (s Entries) Demands(strict bool) Demands {
	if !strict && !s.Given { // of nothing else than a map
		return Demands{}
	}
	return Demand("", s.V.Found())
}

// Null implements Sequence.
func (s Entries) Null() cel.Bool {
	if s.Given {
		return cel.False()
	}
	return cel.Not(s.V.Found())
}

// Elem implements Sequence.
func (s Entries) Elem() *schema.Type {
	if s.Values {
		return s.V.Elem()
	}
	return StringType()
}

// Ordered implements Sequence.
func (s Entries) Ordered() bool { return false }

// Origin implements Sequence.
func (s Entries) Origin() origin {
	if s.Values {
		return s.V.Origin
	}
	return FromRequest
}

// The entries of a map have no order: CEL may go through them in another one each time,
// and so does Kyverno. Each sequence tells whether its elements have one. What is read
// from a map may be counted, searched and sorted; whatever depends on the order is
// left to the webhook.

// InOrder is a sequence as a list of which the order matters.
func InOrder(l *Lowering, s Sequence) (cel.Value, bool) {
	MustBeOrdered(l, SequenceOf(s))
	return s.List(l, false)
}

// MustBeOrdered refuses a list of which the order matters and is that of a map.
func MustBeOrdered(l *Lowering, j Operand) {
	if !j.ordered() {
		panic(l.Unsupported("the order of a map's keys or values"))
	}
}

// ordered tells that whatever lists j has in it are in order.
func (j Operand) ordered() bool {
	switch j.Form {
	case SequenceForm:
		return j.S.Ordered()
	case ChoiceForm:
		return j.Then.ordered() && j.Els.ordered()
	case MultiForm:
		return allOrdered(j.Multi)
	}
	return true
}

func allOrdered(parts []Operand) bool {
	return !slices.ContainsFunc(parts, func(j Operand) bool { return !j.ordered() })
}

// FromMap is a sequence in the order of a map, which is none.
type FromMap struct{ Sequence }

// Ordered implements Sequence.
func (FromMap) Ordered() bool { return false }
