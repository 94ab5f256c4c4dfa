package read

import (
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
