package translate

import (
	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/jmespath"
	"github.com/kvap/kvap/schema"
)

// projectImages is group.*.right, the same part of each image; false where that is no
// single part.
func (l *lowering) projectImages(g *imageGroup, right *jmespath.Expr) (operand, bool) {
	if right.Op != jmespath.Field || right.Dynamic != nil {
		return operand{}, false
	}
	part, ok := imagePartNamed(right.Name)
	if !ok {
		return sequenceOf(whereGroup{concat{}, g, l}), true
	}
	defer l.atTop()()
	keep := every
	if part.has != nil {
		keep = func(c cel.Value) cel.Bool { return part.has(c.Field("image")) }
	}
	texts := l.ifValid(g.mapped(l, keep, func(c cel.Value) cel.Value { return part.text(g, c) }))
	name := g.name[:len(g.name)-1] + part.plural
	list := listOf{v: placeOf(l.let(name, texts), &schema.Type{Kind: schema.List, Elem: stringType()}).from(fromServer), hint: part.plural}
	return sequenceOf(whereGroup{fromMap{list}, g, l}), true
}

// whereGroup is a list that is null where the group has no images; it is empty then.
type whereGroup struct {
	sequence
	group *imageGroup
	l     *lowering
}

func (s whereGroup) null() cel.Bool { return cel.Not(s.group.present(s.l)) }

// imageValues is a group's images as the values of a projection.
type imageValues struct{ group *imageGroup }

func (s imageValues) quantify(l *lowering, q cel.Quantifier, _ bool, body func(operand) cel.Bool) cel.Bool {
	return l.binders.Quantify(q, l.ifValidContainers(s.group), singular(s.group.name), func(c cel.Value) cel.Bool {
		return body(operand{form: imageForm, images: s.group, v: placeOf(c, s.group.list.elem())})
	})
}

func (s imageValues) count(l *lowering, _ bool) cel.Value { return l.ifValidContainers(s.group).Size() }

func (s imageValues) list(*lowering, bool) (cel.Value, bool) { return cel.Value{}, false }

func (s imageValues) null() cel.Bool { return cel.False() }

func (s imageValues) elem() *schema.Type { return anyType() }

func (s imageValues) ordered() bool { return false }

// imageProjection is group.*, and right of each image.
func (l *lowering) imageProjection(g *imageGroup, right *jmespath.Expr) operand {
	if j, ok := l.projectImages(g, right); ok {
		return j
	}
	if !keepsNull(right) {
		panic(l.refuse(diag.NoExpression, "a projection over images that makes something of null"))
	}
	var s sequence = imageValues{g}
	if right.Op != jmespath.Current {
		s = mapped{l: l, of: s, f: func(l *lowering, x operand) operand { return l.perElement(right, x) }}
	}
	return sequenceOf(whereGroup{s, g, l})
}

// keepsNull tells that the expression is null of null. The projection of a map
// begins with as many nulls as there are values.
func keepsNull(e *jmespath.Expr) bool {
	switch e.Op {
	case jmespath.Current, jmespath.Field, jmespath.MultiList, jmespath.MultiHash:
		return true
	case jmespath.Sub, jmespath.Index, jmespath.Flatten, jmespath.Projection, jmespath.ValueProjection, jmespath.Filter:
		return keepsNull(e.Args[0]) && (e.Op != jmespath.Sub || keepsNull(e.Args[1]))
	}
	return false
}
