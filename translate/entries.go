package translate

import (
	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/schema"
)

// entries is the keys, or the values, of a map.
type entries struct {
	v      place
	values bool
	// given tells that they are those of a function's argument: where the map is
	// missing that is an error, and nothing takes it for null.
	given bool
}

func (s entries) source(strict bool) cel.Value {
	src := s.v.expr
	switch {
	case strict:
		src = s.v.orNull()
	case !s.v.certain():
		if s.v.opt.IsZero() {
			src = cel.Cond(s.v.found(), s.v.expr, cel.Map())
		} else {
			src = s.v.opt.OrValue(cel.Map())
		}
	}
	return s.keyed(src)
}

// keyed is the map as one whose keys are not known when compiling: the type checker
// knows no keys of an object type.
func (s entries) keyed(src cel.Value) cel.Value {
	if s.v.kind() == schema.Object {
		return dyn(src)
	}
	return src
}

// of is the key of an entry, or its value: whoever has a key has the map.
func (s entries) of(key cel.Value) operand {
	if s.values {
		return elementOf(s, s.keyed(s.v.expr).Index(key))
	}
	return valueOf(key, stringType())
}

func (s entries) quantify(l *lowering, q cel.Quantifier, strict bool, body func(operand) cel.Bool) cel.Bool {
	src := s.source(l.reads(s.v, strict || s.given))
	return l.binders.Quantify(q, src, "key", func(k cel.Value) cel.Bool { return l.perLoop(k, func() cel.Bool { return body(s.of(k)) }) })
}

func (s entries) count(l *lowering, strict bool) cel.Value {
	return s.source(l.reads(s.v, strict || s.given)).Size()
}

func (s entries) list(l *lowering, strict bool) (cel.Value, bool) {
	src := s.source(l.reads(s.v, strict || s.given))
	return l.binders.Map(src, "key", func(k cel.Value) cel.Value {
		if s.values {
			return s.keyed(s.v.expr).Index(k)
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

func (s entries) ordered() bool { return false }
