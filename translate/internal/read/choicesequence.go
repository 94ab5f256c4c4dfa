package read

import (
	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/schema"
)

// OrEmpty is a sequence whose missing source counts as an empty list.
type OrEmpty struct{ Sequence }

// Quantify implements Sequence.
func (s OrEmpty) Quantify(l *Lowering, q cel.Quantifier, _ bool, body func(Operand) cel.Bool) cel.Bool {
	return s.Sequence.Quantify(l, q, false, body)
}

// Count implements Sequence.
func (s OrEmpty) Count(l *Lowering, _ bool) cel.Value { return s.Sequence.Count(l, false) }

// List implements Sequence.
func (s OrEmpty) List(l *Lowering, _ bool) (cel.Value, bool) { return s.Sequence.List(l, false) }

// Demands implements Sequence.
func (s OrEmpty) Demands(bool) Demands { return s.Sequence.Demands(false) }

// Null implements Sequence.
func (s OrEmpty) Null() cel.Bool { return cel.False() }

// Branch is one sequence or another.
type Branch struct {
	C         cel.Bool
	Then, Els Sequence
}

// Quantify implements Sequence.
func (s Branch) Quantify(l *Lowering, q cel.Quantifier, strict bool, body func(Operand) cel.Bool) cel.Bool {
	return cel.CondBool(s.C, s.Then.Quantify(l, q, strict, body), s.Els.Quantify(l, q, strict, body))
}

// Count implements Sequence.
func (s Branch) Count(l *Lowering, strict bool) cel.Value {
	return cel.Cond(s.C, s.Then.Count(l, strict), s.Els.Count(l, strict))
}

// List implements Sequence.
func (s Branch) List(l *Lowering, strict bool) (cel.Value, bool) {
	then, ok := s.Then.List(l, strict)
	els, ok2 := s.Els.List(l, strict)
	if !ok || !ok2 {
		return cel.Value{}, false
	}
	return cel.Cond(s.C, then, els), true
}

// Demands implements Sequence.
func (s Branch) Demands(strict bool) Demands {
	return DemandsWhere(s.C, s.Then.Demands(strict), s.Els.Demands(strict))
}

// Null implements Sequence.
func (s Branch) Null() cel.Bool { return cel.CondBool(s.C, s.Then.Null(), s.Els.Null()) }

// Elem implements Sequence.
func (s Branch) Elem() *schema.Type { return Concat{s.Then, s.Els}.Elem() }

// Ordered implements Sequence.
func (s Branch) Ordered() bool { return s.Then.Ordered() && s.Els.Ordered() }

// Origin implements Sequence.
func (s Branch) Origin() origin { return Concat{s.Then, s.Els}.Origin() }

// Guarded is a sequence that counts only where a value is found. Read strictly, it
// is an error where the value is missing; softly it is then null.
type Guarded struct {
	Sequence
	V    Place
	soft bool
	// Called tells that a function gave it, to which null is an error.
	Called bool
}

// Quantify implements Sequence.
func (s Guarded) Quantify(l *Lowering, macro cel.Quantifier, strict bool, body func(Operand) cel.Bool) cel.Bool {
	inner := s.Sequence.Quantify(l, macro, strict, body)
	if macro == cel.ForAll {
		return cel.Implies(s.there(strict), inner)
	}
	return cel.And(s.there(strict), inner)
}

// Demands implements Sequence.
func (s Guarded) Demands(strict bool) Demands {
	found := s.V.KeysFound()
	switch {
	case s.soft && !strict:
		found = cel.True()
	case strict || s.Called:
		found = s.V.Found()
	}
	return Demand("", found).And(s.Sequence.Demands(strict))
}

// there is what is asked for before the elements are read: nothing where null is an
// error; where only a missing v is one, that v is no null.
func (s Guarded) there(strict bool) cel.Bool {
	switch {
	case s.soft && !strict:
		return s.V.Found()
	case strict || s.Called:
		return cel.True()
	}
	return s.V.Shaped()
}

// Count implements Sequence.
func (s Guarded) Count(l *Lowering, strict bool) cel.Value {
	return cel.Cond(s.there(strict), s.Sequence.Count(l, strict), cel.Int(0))
}

// List implements Sequence.
func (s Guarded) List(l *Lowering, strict bool) (cel.Value, bool) {
	list, ok := s.Sequence.List(l, strict)
	if !ok {
		return list, false
	}
	return cel.Cond(s.there(strict), list, cel.List()), true
}

// Null implements Sequence.
func (s Guarded) Null() cel.Bool {
	if s.soft {
		return cel.Or(cel.Not(s.V.Found()), s.Sequence.Null())
	}
	if s.Called {
		return s.Sequence.Null()
	}
	return cel.Or(cel.Not(s.V.Shaped()), s.Sequence.Null())
}

// PresentSequence is a sequence whose source is known to be there.
type PresentSequence struct{ Sequence }

// Null implements Sequence.
func (PresentSequence) Null() cel.Bool { return cel.False() }

// List implements Sequence.
func (s PresentSequence) List(l *Lowering, _ bool) (cel.Value, bool) {
	return s.Sequence.List(l, false)
}

// SortedSequence is a list that was sorted. CEL sorts from 1.35 on; before, its elements can
// be searched and counted.
type SortedSequence struct{ Sequence }

// List implements Sequence.
func (s SortedSequence) List(l *Lowering, strict bool) (cel.Value, bool) {
	v, ok := s.Sequence.List(l, strict)
	if !ok || !l.Release.Has("sort") {
		return cel.Value{}, false
	}
	return v.Call(cel.FuncSort), true
}

// Ordered implements Sequence.
func (s SortedSequence) Ordered() bool { return true }
