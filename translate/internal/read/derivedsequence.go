package read

import (
	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/schema"
)

// Filtered is the elements that satisfy keep.
type Filtered struct {
	Of   Sequence
	Keep func(*Lowering, Operand) cel.Bool
	// NonNull tells that they are those of a list of unknown type that are not null.
	NonNull bool
}

// Quantify implements Sequence.
func (s Filtered) Quantify(l *Lowering, q cel.Quantifier, strict bool, body func(Operand) cel.Bool) cel.Bool {
	return s.Of.Quantify(l, q, strict, func(x Operand) cel.Bool {
		if q == cel.ForAll {
			return cel.Implies(s.Keep(l, x), body(x))
		}
		return cel.And(s.Keep(l, x), body(x))
	})
}

// Count implements Sequence.
func (s Filtered) Count(l *Lowering, strict bool) cel.Value {
	if list, ok := s.List(l, strict); ok {
		return list.Size()
	}
	return countBy(l, s, strict)
}

// List implements Sequence.
func (s Filtered) List(l *Lowering, strict bool) (cel.Value, bool) {
	src, ok := s.Of.List(l, strict)
	if !ok {
		return src, false
	}
	if one, ok := s.Of.(Single); ok { // which can be read only where it is kept
		return cel.Cond(s.Keep(l, one.J), src, cel.List()), true
	}
	kept := l.Binders.Filter(src, HintOf(s.Of), func(x cel.Value) cel.Bool { return s.Keep(l, ElementOf(s.Of, x)) })
	return kept, true
}

// Demands implements Sequence.
func (s Filtered) Demands(strict bool) Demands { return s.Of.Demands(strict) }

// Null implements Sequence.
func (s Filtered) Null() cel.Bool { return s.Of.Null() }

// Elem implements Sequence.
func (s Filtered) Elem() *schema.Type { return s.Of.Elem() }

// Ordered implements Sequence.
func (s Filtered) Ordered() bool { return s.Of.Ordered() }

// Origin implements Sequence.
func (s Filtered) Origin() origin { return s.Of.Origin() }

// Mapped is f of each element, without those for which it is missing or null.
type Mapped struct {
	L  *Lowering
	Of Sequence
	F  func(*Lowering, Operand) Operand
}

// Quantify implements Sequence.
func (s Mapped) Quantify(l *Lowering, q cel.Quantifier, strict bool, body func(Operand) cel.Bool) cel.Bool {
	return s.Of.Quantify(l, q, strict, func(x Operand) cel.Bool {
		y := s.F(l, x)
		found := Present(l, y)
		if q == cel.ForAll {
			return cel.Implies(found, body(y.Settled()))
		}
		return cel.And(found, body(y.Settled()))
	})
}

// Count implements Sequence.
func (s Mapped) Count(l *Lowering, strict bool) cel.Value {
	src, ok := s.Of.List(l, strict)
	if !ok {
		return countBy(l, s, strict)
	}
	return s.kept(l, src).Size()
}

func (s Mapped) kept(l *Lowering, src cel.Value) cel.Value {
	if p := Present(l, s.F(l, ElementOf(s.Of, cel.Ident("x")))); p.IsTrue() {
		return src
	}
	return l.Binders.Filter(src, HintOf(s.Of), func(x cel.Value) cel.Bool {
		return Present(l, s.F(l, ElementOf(s.Of, x)))
	})
}

// List implements Sequence.
func (s Mapped) List(l *Lowering, strict bool) (cel.Value, bool) {
	src, ok := s.Of.List(l, strict)
	if !ok {
		return src, false
	}
	good := true
	out := l.Binders.Map(s.kept(l, src), HintOf(s.Of), func(x cel.Value) cel.Value {
		y, ok := Expr(l, s.F(l, ElementOf(s.Of, x)).Settled()) // which is there, as kept has asked
		good = good && ok
		return y
	})
	return out, good
}

// Demands implements Sequence.
func (s Mapped) Demands(strict bool) Demands { return s.Of.Demands(strict) }

// Null implements Sequence.
func (s Mapped) Null() cel.Bool { return s.Of.Null() }

// Elem implements Sequence.
func (s Mapped) Elem() *schema.Type { return s.probe().Typ() }

// Ordered implements Sequence.
func (s Mapped) Ordered() bool { return s.Of.Ordered() && s.probe().ordered() }

// Origin implements Sequence.
func (s Mapped) Origin() origin { return s.probe().Origin() }

// probe is f of some element.
func (s Mapped) probe() Operand { return s.F(s.L, ElementOf(s.Of, cel.Ident("x"))) }

// Flat is the elements of the lists that f gives for each element, one after the
// other.
type Flat struct {
	L  *Lowering
	Of Sequence
	F  func(*Lowering, Operand) Sequence
}

// Quantify implements Sequence.
func (s Flat) Quantify(l *Lowering, q cel.Quantifier, strict bool, body func(Operand) cel.Bool) cel.Bool {
	return s.Of.Quantify(l, q, strict, func(x Operand) cel.Bool {
		return s.F(l, x).Quantify(l, q, false, body)
	})
}

// Count implements Sequence.
func (s Flat) Count(l *Lowering, strict bool) cel.Value { return countBy(l, s, strict) }

// List implements Sequence.
func (s Flat) List(l *Lowering, strict bool) (cel.Value, bool) {
	if !l.Release.Has("flatten") {
		return cel.Value{}, false
	}
	src, ok := s.Of.List(l, strict)
	if !ok {
		return src, false
	}
	good := true
	lists := l.Binders.Map(src, HintOf(s.Of), func(x cel.Value) cel.Value {
		inner, ok := s.F(l, ElementOf(s.Of, x)).List(l, false)
		good = good && ok
		return inner
	})
	return lists.Call(cel.FuncFlatten), good
}

// Demands implements Sequence.
func (s Flat) Demands(strict bool) Demands { return s.Of.Demands(strict) }

// Null implements Sequence.
func (s Flat) Null() cel.Bool { return s.Of.Null() }

// Elem implements Sequence.
func (s Flat) Elem() *schema.Type { return s.probe().Elem() }

// Ordered implements Sequence.
func (s Flat) Ordered() bool { return s.Of.Ordered() && s.probe().Ordered() }

// Origin implements Sequence.
func (s Flat) Origin() origin { return s.probe().Origin() }

// probe is f of some element.
func (s Flat) probe() Sequence { return s.F(s.L, ElementOf(s.Of, cel.Ident("x"))) }

// countBy adds up the counts of the parts of a nested sequence.
func countBy(l *Lowering, s Sequence, strict bool) cel.Value {
	var of Sequence
	var within func(l *Lowering, part Sequence) Sequence // s of a part of what it is of
	switch s := s.(type) {
	case Flat:
		if src, ok := s.Of.List(l, strict); ok {
			return l.Binders.Map(src, HintOf(s.Of), func(x cel.Value) cel.Value {
				return s.F(l, ElementOf(s.Of, x)).Count(l, false)
			}).Call(cel.FuncSum)
		}
		of, within = s.Of, func(l *Lowering, part Sequence) Sequence { return Flat{L: l, Of: part, F: s.F} }
	case Filtered:
		of, within = s.Of, func(_ *Lowering, part Sequence) Sequence { return Filtered{Of: part, Keep: s.Keep} }
	case Mapped:
		of, within = s.Of, func(l *Lowering, part Sequence) Sequence { return Mapped{L: l, Of: part, F: s.F} }
	}
	if outer, ok := of.(Flat); ok {
		return countBy(l, Flat{L: l, Of: outer.Of, F: func(l *Lowering, x Operand) Sequence { return within(l, outer.F(l, x)) }}, strict)
	}
	panic(l.Unsupported("counting the elements of this projection"))
}

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

// An ImageGroup is one entry of images: the containers of one kind, by name, with
// the parts of their images. Containers without an image are not in it.
//
// The parts come out of the text by regular expressions. That is right for texts
// that are references; one that is none, in any group, makes whatever reads images
// an error, as in Kyverno. So each list of parts is a composed variable that asks
// for imagesAreValid first.
type ImageGroup struct {
	Name string // containers, initContainers or ephemeralContainers
	List Place  // in the object
}

// containers are a group's containers, none where the list is missing.
func (g *ImageGroup) containers() cel.Value { return ListOf{V: g.List}.Source(false) }

// Mapped is body of each of the group's containers that has an image.
func (g *ImageGroup) Mapped(l *Lowering, keep func(c cel.Value) cel.Bool, body func(c cel.Value) cel.Value) cel.Value {
	withImage := func(c cel.Value) cel.Bool { return cel.And(c.Has("image"), keep(c)) }
	return l.Binders.MapIf(g.containers(), Singular(g.Name), withImage, body)
}

// AtTop is the same walk free of the comprehensions around, as a composed variable is.
func (l *Lowering) AtTop() *Lowering {
	l = l.Inside()
	l.Binders = &cel.Scope{}
	return l
}

// Present is: the group has an image.
func (g *ImageGroup) Present(l *Lowering) cel.Bool {
	return g.List.Soft(false, func(list cel.Value) cel.Bool {
		return l.Binders.Exists(list, Singular(g.Name), func(c cel.Value) cel.Bool { return c.Has("image") })
	})
}

// WithImage are the containers of a group that have an image.
func WithImage(l *Lowering, g *ImageGroup) cel.Value {
	l = l.AtTop()
	list := l.Binders.Filter(g.containers(), Singular(g.Name), func(c cel.Value) cel.Bool { return c.Has("image") })
	return Let(l, g.Name+"WithImage", list)
}

// An ImagePart is a field of the information on an image.
type ImagePart struct {
	Plural string
	Has    func(image cel.Value) cel.Bool // nil where every image has it
	Text   func(image cel.Value) cel.Value
}

// WhereGroup is a list that is null where the group has no images; it is empty then.
type WhereGroup struct {
	Sequence
	Group *ImageGroup
	L     *Lowering
	Part  *ImagePart // what the elements are of each image, if they are one part
}

// Null implements Sequence.
func (s WhereGroup) Null() cel.Bool { return cel.Not(s.Group.Present(s.L)) }

// containers are those whose images have the part.
func (s WhereGroup) containers(l *Lowering) cel.Value {
	all := WithImage(l, s.Group)
	if s.Part.Has == nil {
		return all
	}
	return l.Binders.Filter(all, Singular(s.Group.Name), func(c cel.Value) cel.Bool { return s.Part.Has(c.Field("image")) })
}

// Item is the first or the last of the list, by the names of the containers. The order
// of a map is none, so what Kyverno takes is arbitrary.
func (s WhereGroup) Item(l *Lowering, n int) (Operand, bool) {
	best := map[int]cel.Function{0: cel.FuncMin, -1: cel.FuncMax}[n]
	if best == "" {
		return Operand{}, false
	}
	l.Note(diag.FirstImage, "the first or last of several images is that of the container whose name comes first or last; Kyverno takes an arbitrary one")
	some := s.containers(l).Size().Compare(cel.Greater, cel.Int(0))
	text := s.Part.Text(s.outermost(l, best).Field("image"))
	return OperandAt(Place{Expr: text, Typ: PlainText(), Guards: []Guard{{Cond: some, Shape: true}}}), true
}

// outermost is the container whose name is the first or the last.
func (s WhereGroup) outermost(l *Lowering, best cel.Function) cel.Value {
	l = l.AtTop()
	containers := s.containers(l)
	which := map[cel.Function]string{cel.FuncMin: "first", cel.FuncMax: "last"}[best] + Capital(s.Group.Name[:len(s.Group.Name)-1])
	names := l.Binders.Map(containers, Singular(s.Group.Name), func(c cel.Value) cel.Value { return c.Field("name") })
	name := Let(l, which+"Name", names.Call(best))
	only := l.Binders.Filter(containers, Singular(s.Group.Name), func(c cel.Value) cel.Bool { return c.Field("name").Eq(name) })
	return Let(l, which, only.Index(cel.Int(0)))
}
