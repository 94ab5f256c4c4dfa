package translate

import (
	"github.com/kvap/kvap/cel"
)

// An imagePart is a field of the information on an image.
type imagePart struct {
	plural string
	has    func(image cel.Value) cel.Bool // nil where every image has it
	text   func(g *imageGroup, container cel.Value) cel.Value
}

func imagePartNamed(name string) (imagePart, bool) {
	ofImage := func(f func(cel.Value) cel.Value) func(*imageGroup, cel.Value) cel.Value {
		return func(_ *imageGroup, c cel.Value) cel.Value { return f(c.Field("image")) }
	}
	switch name {
	case "registry":
		return imagePart{"ImageRegistries", nil, ofImage(imageRegistry)}, true
	case "path":
		return imagePart{"ImagePaths", nil, ofImage(imagePath)}, true
	case "name":
		return imagePart{"ImageNames", nil, ofImage(imageName)}, true
	case "tag":
		return imagePart{"ImageTags", hasTag, ofImage(imageTag)}, true
	case "digest":
		return imagePart{"ImageDigests", hasDigest, ofImage(imageDigest)}, true
	case "reference":
		return imagePart{"ImageReferences", nil, ofImage(fullReference)}, true
	case "referenceWithTag":
		return imagePart{"ImageReferencesWithTag", nil, ofImage(referenceWithTag)}, true
	case "jsonPointer":
		return imagePart{"ImagePointers", nil, func(g *imageGroup, c cel.Value) cel.Value {
			index := cel.Func(cel.FuncString, g.list.expr.Call(cel.FuncIndexOf, c))
			return cel.String(g.path + "/").Plus(index).Plus(cel.String("/image"))
		}}, true
	}
	return imagePart{}, false
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

// referenceWithTag leaves out the digest; it ends in a colon where there is no tag.
func referenceWithTag(x cel.Value) cel.Value {
	end := cel.Cond(x.Matches(bareImage), cel.String(":latest"), cel.Cond(x.Matches(digestOnly), cel.String(":"), cel.String("")))
	return withRegistry(x).Plus(beforeDigest(x)).Plus(end)
}
