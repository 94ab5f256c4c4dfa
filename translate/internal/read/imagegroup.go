package read

import (
	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/diag"
)

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
