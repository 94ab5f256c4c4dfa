package query

import (
	"github.com/kvap/kvap/cel"
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
