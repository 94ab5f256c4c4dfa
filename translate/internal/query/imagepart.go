package query

import (
	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/jmespath"
	"github.com/kvap/kvap/schema"
	"github.com/kvap/kvap/translate/internal/read"
)

func imagePartNamed(name string) (part read.ImagePart, ok bool) {
	part, ok = map[string]read.ImagePart{
		"registry":  {Plural: "ImageRegistries", Text: imageRegistry},
		"path":      {Plural: "ImagePaths", Text: imagePath},
		"name":      {Plural: "ImageNames", Text: imageName},
		"tag":       {Plural: "ImageTags", Has: hasTag, Text: imageTag},
		"digest":    {Plural: "ImageDigests", Has: hasDigest, Text: imageDigest},
		"reference": {Plural: "ImageReferences", Text: fullReference},
	}[name]
	return part, ok
}

func found(x cel.Value, re string) cel.Value { return x.Call(cel.FuncFind, cel.String(re)) }

// beforeDigest is a reference without its digest.
func beforeDigest(x cel.Value) cel.Value {
	return x.Call(cel.FuncSplit, cel.String("@")).Index(cel.Int(0))
}

func imageRegistry(x cel.Value) cel.Value {
	return cel.Cond(x.Matches(namesRegistry), x.Call(cel.FuncSplit, cel.String("/")).Index(cel.Int(0)), cel.String(defaultRegistry))
}

func imagePath(x cel.Value) cel.Value {
	repository := found(x, repositoryPart)
	after := repository.Call(cel.FuncSubstring, repository.Call(cel.FuncIndexOf, cel.String("/")).Plus(cel.Int(1)))
	return cel.Cond(x.Matches(namesRegistry), after, repository)
}

func imageName(x cel.Value) cel.Value {
	return found(beforeDigest(x), `[^/]+$`).Call(cel.FuncSplit, cel.String(":")).Index(cel.Int(0))
}

// hasTag is false for an image that has a digest only.
func hasTag(x cel.Value) cel.Bool { return cel.Not(x.Matches(digestOnly)) }

func imageTag(x cel.Value) cel.Value {
	return cel.Cond(x.Matches(bareImage), cel.String("latest"), found(beforeDigest(x), `[^:]+$`))
}

func hasDigest(x cel.Value) cel.Bool { return x.Contains(cel.String("@")) }

func imageDigest(x cel.Value) cel.Value {
	return x.Call(cel.FuncSplit, cel.String("@")).Index(cel.Int(1))
}

// withRegistry is what stands in front of a reference that names no registry.
func withRegistry(x cel.Value) cel.Value {
	return cel.Cond(x.Matches(namesRegistry), cel.String(""), cel.String(defaultRegistry+"/"))
}

// fullReference leaves out the tag where there is a digest.
func fullReference(x cel.Value) cel.Value {
	byDigest := found(x, repositoryPart).Plus(found(x, `@.*`))
	byTag := cel.Cond(x.Matches(bareImage), x.Plus(cel.String(":latest")), x)
	return withRegistry(x).Plus(cel.Cond(hasDigest(x), byDigest, byTag))
}

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
	top := l.AtTop()
	keep := every
	if part.Has != nil {
		keep = func(c cel.Value) cel.Bool { return part.Has(c.Field("image")) }
	}
	texts := g.Mapped(top, keep, func(c cel.Value) cel.Value { return part.Text(c.Field("image")) })
	name := g.Name[:len(g.Name)-1] + part.Plural
	list := read.ListOf{V: read.PlaceOf(read.Let(top, name, texts), &schema.Type{Kind: schema.List, Elem: read.PlainText()}), Hint: part.Plural}
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
