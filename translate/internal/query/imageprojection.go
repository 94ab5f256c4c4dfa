package query

import (
	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/jmespath"
	"github.com/kvap/kvap/schema"
	"github.com/kvap/kvap/translate/internal/read"
)

// imageProjection is group.*.right, the same part of each image.
func imageProjection(l *read.Lowering, g *read.ImageGroup, right *jmespath.Expr) read.Operand {
	if right.Op != jmespath.Field || right.Dynamic != nil {
		panic(l.Unsupported("a projection over images that gives no single part of each"))
	}
	if right.Name == "referenceWithTag" || right.Name == "jsonPointer" {
		panic(l.Unsupported("the " + right.Name + " of an image"))
	}
	part, ok := imagePartNamed(right.Name)
	if !ok {
		return read.SequenceOf(read.WhereGroup{Sequence: read.Concat{}, Group: g, L: l, Part: nil})
	}
	defer read.AtTop(l)()
	keep := every
	if part.Has != nil {
		keep = func(c cel.Value) cel.Bool { return part.Has(c.Field("image")) }
	}
	texts := g.Mapped(l, keep, func(c cel.Value) cel.Value { return part.Text(c.Field("image")) })
	name := g.Name[:len(g.Name)-1] + part.Plural
	list := read.ListOf{V: read.PlaceOf(read.Let(l, name, texts), &schema.Type{Kind: schema.List, Elem: read.PlainText()}), Hint: part.Plural}
	return read.SequenceOf(read.WhereGroup{Sequence: read.FromMap{Sequence: list}, Group: g, L: l, Part: &part})
}

// imageItem is an element of a list of parts by its place: the first or the last.
func imageItem(l *read.Lowering, j read.Operand, n int) (read.Operand, bool) {
	parts, ok := j.S.(read.WhereGroup)
	if !ok || parts.Part == nil {
		return read.Operand{}, false
	}
	return parts.Item(l, n)
}
