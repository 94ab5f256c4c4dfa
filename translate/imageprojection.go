package translate

import (
	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/jmespath"
	"github.com/kvap/kvap/schema"
)

// imageProjection is group.*.right, the same part of each image.
func (l *lowering) imageProjection(g *imageGroup, right *jmespath.Expr) operand {
	if right.Op != jmespath.Field || right.Dynamic != nil {
		panic(l.unsupported("a projection over images that gives no single part of each"))
	}
	if right.Name == "referenceWithTag" || right.Name == "jsonPointer" {
		panic(l.unsupported("the " + right.Name + " of an image"))
	}
	part, ok := imagePartNamed(right.Name)
	if !ok {
		return sequenceOf(whereGroup{concat{}, g, l, nil})
	}
	defer l.atTop()()
	keep := every
	if part.has != nil {
		keep = func(c cel.Value) cel.Bool { return part.has(c.Field("image")) }
	}
	texts := g.mapped(l, keep, func(c cel.Value) cel.Value { return part.text(c.Field("image")) })
	name := g.name[:len(g.name)-1] + part.plural
	list := listOf{v: placeOf(l.let(name, texts), &schema.Type{Kind: schema.List, Elem: stringType()}).from(fromServer), hint: part.plural}
	return sequenceOf(whereGroup{fromMap{list}, g, l, &part})
}

// whereGroup is a list that is null where the group has no images; it is empty then.
type whereGroup struct {
	sequence
	group *imageGroup
	l     *lowering
	part  *imagePart // what the elements are of each image, if they are one part
}

func (s whereGroup) null() cel.Bool { return cel.Not(s.group.present(s.l)) }

// imageItem is an element of a list of parts by its place: the first or the last.
func (l *lowering) imageItem(j operand, n int) (operand, bool) {
	parts, ok := j.s.(whereGroup)
	if !ok || parts.part == nil {
		return operand{}, false
	}
	return parts.item(l, n)
}

// containers are those whose images have the part.
func (s whereGroup) containers(l *lowering) cel.Value {
	all := l.withImage(s.group)
	if s.part.has == nil {
		return all
	}
	return l.binders.Filter(all, singular(s.group.name), func(c cel.Value) cel.Bool { return s.part.has(c.Field("image")) })
}

// item is the first or the last of the list, by the names of the containers. The order
// of a map is none, so what Kyverno takes is arbitrary.
func (s whereGroup) item(l *lowering, n int) (operand, bool) {
	best := map[int]cel.Function{0: cel.FuncMin, -1: cel.FuncMax}[n]
	if best == "" {
		return operand{}, false
	}
	l.note(diag.FirstImage, "the first or last of several images is that of the container whose name comes first or last; Kyverno takes an arbitrary one")
	some := s.containers(l).Size().Compare(cel.Greater, cel.Int(0))
	text := s.part.text(s.outermost(l, best).Field("image"))
	return operandAt(place{expr: text, typ: stringType(), origin: fromServer, guards: []guard{{cond: some, shape: true}}}), true
}

// outermost is the container whose name is the first or the last.
func (s whereGroup) outermost(l *lowering, best cel.Function) cel.Value {
	defer l.atTop()()
	containers := s.containers(l)
	which := map[cel.Function]string{cel.FuncMin: "first", cel.FuncMax: "last"}[best] + capital(s.group.name[:len(s.group.name)-1])
	names := l.binders.Map(containers, singular(s.group.name), func(c cel.Value) cel.Value { return c.Field("name") })
	name := l.let(which+"Name", names.Call(best))
	only := l.binders.Filter(containers, singular(s.group.name), func(c cel.Value) cel.Bool { return c.Field("name").Eq(name) })
	return l.let(which, only.Index(cel.Int(0)))
}
