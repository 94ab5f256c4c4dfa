package query

import (
	"github.com/kvap/kvap/cel"
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
