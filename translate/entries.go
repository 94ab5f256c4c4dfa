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

func (s entries) of(src, key cel.Value) operand {
	if s.values {
		return elementOf(s, src.Index(key))
	}
	return valueOf(key, stringType())
}

func (s entries) quantify(l *lowering, macro quantifier, strict bool, body func(operand) cel.Bool) cel.Bool {
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
