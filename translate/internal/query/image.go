package query

import (
	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/jmespath"
	"github.com/kvap/kvap/schema"
	"github.com/kvap/kvap/translate/internal/native"
	"github.com/kvap/kvap/translate/internal/read"
)

// What stands before the first slash of a reference is a registry if this matches.
const namesRegistry = `^(localhost|[^/]*[.:A-Z][^/]*)/`

// A reference that has neither a tag nor a digest, one that has a digest but no
// tag, and the part before both.
const (
	bareImage      = `(^|/)[^/:@]+$`
	digestOnly     = `(^|/)[^/:@]+@`
	repositoryPart = `^([^@]*/)?[^:@]*`
)

// The grammar of references. A registry with an underscore in its name, which no
// client can reach and which Kyverno takes for a path, is no reference here.
const (
	hostLabel  = `[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?`
	imageHost  = `(?:` + hostLabel + `(?:\.` + hostLabel + `)*|\[[a-fA-F0-9]*:[a-fA-F0-9:]*\])(?::[0-9]+)?`
	firstPart  = `[a-z0-9]+(?:(?:__?|-+)[a-z0-9]+)*`
	pathPart   = `[a-z0-9]+(?:(?:\.|__?|-+)[a-z0-9]+)*`
	tagPart    = `(?::\w[\w.-]{0,127})?`
	digestPart = `@(?:sha256:[0-9a-f]{64}|sha384:[0-9a-f]{96}|sha512:[0-9a-f]{128})`

	taggedImage    = `^(?:(?:` + imageHost + `|` + firstPart + `)(?:/` + pathPart + `)+|` + pathPart + `)` + tagPart
	imageReference = taggedImage + `(?:` + digestPart + `)?$`
	pinnedImage    = taggedImage + digestPart + `$`
)

const defaultRegistry = "docker.io"

// invalidImage is the key whose absence an error names.
const invalidImage = "invalid_image_reference"

// longestRepository is the most that registry and path may have together.
const longestRepository = 255

// longestReference is the most that a reference can have, with a tag and a digest.
const longestReference = longestRepository + len(":") + 128 + len("@sha512:") + 128

// allImages is the images of the new object, also where the old one is judged.
func allImages(l *read.Lowering) read.Operand {
	if l.Rule.ImageExtractors.Get(l.Target.GVK.Kind) != nil {
		panic(l.Unsupported("an imageExtractor of the rule's own"))
	}
	groups := imageGroups(l)
	if len(groups) == 0 || l.On(native.Delete) {
		return read.Operand{Form: read.ErrorForm, Hint: "images"}
	}
	out := read.Operand{Form: read.HashForm}.Demanding(read.DemandToLoad(invalidImage, imagesAreValid(l)))
	for i := range groups {
		out.Keys = append(out.Keys, groups[i].Name)
		out.Multi = append(out.Multi, read.Operand{Form: read.ImagesForm, Images: &groups[i]})
	}
	return out
}

// imageGroups are the places of images in an object of the target's kind.
func imageGroups(l *read.Lowering) (out []read.ImageGroup) {
	spec, ok := podSpec(l, cel.Ident("object"))
	if !ok {
		return nil
	}
	for _, name := range []string{"containers", "initContainers", "ephemeralContainers"} {
		out = append(out, read.ImageGroup{Name: name, List: spec.Field(name)})
	}
	return out
}

// podSpec is where an object of the target's kind has the spec of a Pod; false if it has none.
func podSpec(l *read.Lowering, object cel.Value) (spec read.Place, ok bool) {
	var path []string
	switch l.Target.GVK.Kind {
	case "Pod":
		path = []string{"spec"}
	case "DaemonSet", "Deployment", "Job", "StatefulSet", "ReplicaSet", "ReplicationController":
		path = []string{"spec", "template", "spec"}
	case "CronJob":
		path = []string{"spec", "jobTemplate", "spec", "template", "spec"}
	default:
		if l.Target.KindWild != "" || l.Target.GVK.Kind == "" {
			panic(l.Unsupported("the images of objects of any kind"))
		}
		return spec, false
	}
	spec = read.PlaceOf(object, read.ObjectType(l, l.Target))
	for _, name := range path {
		spec = spec.Field(name)
	}
	if spec.Never || spec.Dynamic() {
		panic(l.Unsupported("the images of a kind whose schema is not known"))
	}
	return spec, true
}

func every(cel.Value) cel.Bool { return cel.True() }

// imagesAreValid is: the images of all groups are references.
func imagesAreValid(l *read.Lowering) cel.Bool {
	l = l.AtTop()
	var all cel.Value
	for i, g := range imageGroups(l) {
		texts := g.Mapped(l, every, func(c cel.Value) cel.Value { return c.Field("image") })
		if i == 0 {
			all = texts
		} else {
			all = all.Plus(texts)
		}
	}
	valid := l.Binders.All(all, "image", func(x cel.Value) cel.Bool { return isReference(x, imageReference) })
	return read.Let(l, "imagesAreValid", valid.Value).AsBool()
}

// isReference is: a text is a reference by a form of the grammar.
func isReference(x cel.Value, form string) cel.Bool {
	length := cel.Cond(x.Matches(namesRegistry), cel.Int(longestRepository), cel.Int(longestRepository-int64(len(defaultRegistry+"/"))))
	return cel.And(x.Matches(form), found(x, repositoryPart).Size().Compare(cel.LessEqual, length))
}

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

// A rule that verifies images and names nobody who must have signed them asks for digests. The
// images are those of the containers and of volumes.
//
//	verifyImages:                    images:    object.spec.containers.map(container, container.image) + …
//	- imageReferences: ["*"]         badImages: variables.images.filter(image, !image.matches('^…@sha256:[0-9a-f]{64}$'))
//	  verifyDigest: true
//	  mutateDigest: false            variables.badImages.size() == 0
//	  required: false

// WithoutDigest are the images of the new object that are no references with a digest; false
// where there are no images to look at.
func WithoutDigest(l *read.Lowering) (bad cel.Value, ok bool) {
	images, ok := imageTexts(l, cel.Ident("object"), "images")
	ofPod := l.Target.Subresource == "" || l.Target.Subresource == "ephemeralcontainers"
	if !ok || !ofPod || l.On(native.Delete) || l.On(native.Connect) {
		return bad, false
	}
	bad = l.Binders.Filter(images, "image", func(x cel.Value) cel.Bool {
		tooLong := x.Size().Compare(cel.Greater, cel.Int(int64(longestReference))) // for an expression, which costs by its length
		return cel.Or(tooLong, cel.Not(isReference(x, pinnedImage)))
	})
	return read.Let(l, "badImages", bad), true
}

// GoesWithImages is: the object is being deleted, and waits for its finalizers with the images
// that it had.
func GoesWithImages(l *read.Lowering) cel.Bool {
	if !l.On(native.Update) {
		return cel.False()
	}
	now, _ := imageTexts(l, cel.Ident("object"), "images")
	before, _ := imageTexts(l, cel.Ident("oldObject"), "imagesBefore")
	return cel.And(
		cel.Ident("request").Field("operation").Eq(cel.String(string(native.Update))),
		cel.Ident("oldObject").Field("metadata").Has("deletionTimestamp"),
		now.Eq(before))
}

// imageTexts is a variable with the images of an object, without those that are to be filled in
// later, which are blank; false if its kind has none.
func imageTexts(l *read.Lowering, object cel.Value, name string) (texts cel.Value, ok bool) {
	l = l.AtTop()
	spec, ok := podSpec(l, object)
	if !ok {
		return texts, false
	}
	if l.Opts.Schemas.Custom(l.Target.Parent) {
		panic(l.Unsupported("the images of a kind that is not built in"))
	}
	image := func(c cel.Value) cel.Value { return c.Field("image") }
	for i, name := range []string{"initContainers", "containers", "ephemeralContainers"} {
		one := l.Binders.Map(read.ListOf{V: spec.Field(name)}.Source(false), read.Singular(name), image)
		if i == 0 {
			texts = one
		} else {
			texts = texts.Plus(one)
		}
	}
	if volumes := spec.Field("volumes"); mayBeImages(volumes) {
		some := l.Binders.Filter(read.ListOf{V: volumes}.Source(false), "volume", func(v cel.Value) cel.Bool { return v.Has("image") })
		texts = texts.Plus(l.Binders.Map(some, "volume", func(v cel.Value) cel.Value {
			reference := image(v).Optional("reference")
			return reference.OrValue(cel.String(""))
		}))
	}
	texts = l.Binders.Filter(texts, "image", func(x cel.Value) cel.Bool {
		return cel.Not(x.Call(cel.FuncTrim).Eq(cel.String("")))
	})
	return read.Let(l, name, texts), true
}

// mayBeImages tells of volumes that may be images, in the release.
func mayBeImages(volumes read.Place) bool {
	return volumes.Kind() == schema.List && volumes.Typ.Elem.Kind == schema.Object && volumes.Typ.Elem.Fields["image"] != nil
}
