package translate

import (
	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/schema"
)

// orEmpty is a sequence whose missing source counts as an empty list.
type orEmpty struct{ sequence }

func (s orEmpty) quantify(l *lowering, q cel.Quantifier, _ bool, body func(operand) cel.Bool) cel.Bool {
	return s.sequence.quantify(l, q, false, body)
}

func (s orEmpty) count(l *lowering, _ bool) cel.Value { return s.sequence.count(l, false) }

func (s orEmpty) list(l *lowering, _ bool) (cel.Value, bool) { return s.sequence.list(l, false) }

func (s orEmpty) null() cel.Bool { return cel.False() }

// branch is one sequence or another.
type branch struct {
	c         cel.Bool
	then, els sequence
}

func (s branch) quantify(l *lowering, q cel.Quantifier, strict bool, body func(operand) cel.Bool) cel.Bool {
	then, els := l.eitherWay(s.c,
		func() cel.Bool { return s.then.quantify(l, q, strict, body) },
		func() cel.Bool { return s.els.quantify(l, q, strict, body) })
	return cel.CondBool(s.c, then, els)
}

func (s branch) count(l *lowering, strict bool) cel.Value {
	var a, b cel.Value
	l.eitherWay(s.c,
		func() cel.Bool { a = s.then.count(l, strict); return cel.True() },
		func() cel.Bool { b = s.els.count(l, strict); return cel.True() })
	return cel.Cond(s.c, a, b)
}

func (s branch) list(l *lowering, strict bool) (cel.Value, bool) {
	var a, b cel.Value
	var ok, ok2 bool
	l.eitherWay(s.c,
		func() cel.Bool { a, ok = s.then.list(l, strict); return cel.True() },
		func() cel.Bool { b, ok2 = s.els.list(l, strict); return cel.True() })
	if !ok || !ok2 {
		return cel.Value{}, false
	}
	return cel.Cond(s.c, a, b), true
}

func (s branch) null() cel.Bool { return cel.CondBool(s.c, s.then.null(), s.els.null()) }

func (s branch) elem() *schema.Type { return concat{s.then, s.els}.elem() }

func (s branch) ordered() bool { return s.then.ordered() && s.els.ordered() }

// guarded is a sequence that counts only where a value is found. Read strictly, it
// is an error where the value is missing; softly it is then null.
type guarded struct {
	sequence
	v    place
	soft bool
	// called tells that a function gave it, to which null is an error.
	called bool
}

func (s guarded) quantify(l *lowering, macro cel.Quantifier, strict bool, body func(operand) cel.Bool) cel.Bool {
	inner := s.sequence.quantify(l, macro, strict, body)
	if macro == cel.ForAll {
		return cel.Implies(s.read(l, strict), inner)
	}
	return cel.And(s.read(l, strict), inner)
}

// read is what is asked for before the elements are read: nothing where null is an
// error; where only a missing v is one, that v is no null.
func (s guarded) read(l *lowering, strict bool) cel.Bool {
	if s.soft && !strict {
		return s.v.found()
	}
	if strict || s.called {
		l.need(s.v.found())
		return cel.True()
	}
	l.need(s.v.keysFound())
	return s.v.shaped()
}

func (s guarded) count(l *lowering, strict bool) cel.Value {
	return cel.Cond(s.read(l, strict), s.sequence.count(l, strict), cel.Int(0))
}

func (s guarded) list(l *lowering, strict bool) (cel.Value, bool) {
	list, ok := s.sequence.list(l, strict)
	if !ok {
		return list, false
	}
	return cel.Cond(s.read(l, strict), list, cel.List()), true
}

func (s guarded) null() cel.Bool {
	if s.soft {
		return cel.Or(cel.Not(s.v.found()), s.sequence.null())
	}
	if s.called {
		return s.sequence.null()
	}
	return cel.Or(cel.Not(s.v.shaped()), s.sequence.null())
}

// presentSequence is a sequence whose source is known to be there.
type presentSequence struct{ sequence }

func (presentSequence) null() cel.Bool { return cel.False() }
