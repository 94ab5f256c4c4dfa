package translate

import (
	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/jmespath"
	"github.com/kvap/kvap/translate/internal/native"
)

// An imageGroup is one entry of images: the containers of one kind, by name, with
// the parts of their images. Containers without an image are not in it.
//
// The parts come out of the text by regular expressions. That is right for texts
// that are references; one that is none, in any group, makes whatever reads images
// an error, as in Kyverno. So each list of parts is a composed variable that asks
// for imagesAreValid first.
type imageGroup struct {
	name string // containers, initContainers or ephemeralContainers
	list place  // in the object
}

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
	digestPart = `(?:@(?:sha256:[0-9a-f]{64}|sha384:[0-9a-f]{96}|sha512:[0-9a-f]{128}))?`

	imageReference = `^(?:(?:` + imageHost + `|` + firstPart + `)(?:/` + pathPart + `)+|` + pathPart + `)` + tagPart + digestPart + `$`
)

const defaultRegistry = "docker.io"

// invalidImage is the key whose absence an error names.
const invalidImage = "invalid_image_reference"

// longestRepository is the most that registry and path may have together.
const longestRepository = 255

// images is the images of the new object, also where the old one is judged.
func (l *lowering) images() operand {
	if l.rule.ImageExtractors.Get(l.target.GVK.Kind) != nil {
		panic(l.unsupported("an imageExtractor of the rule's own"))
	}
	groups := l.imageGroups()
	if len(groups) == 0 || l.on(native.Delete) {
		return operand{form: errorForm, hint: "images"}
	}
	l.load(invalidImage, l.imagesAreValid())
	out := operand{form: hashForm}
	for i := range groups {
		out.keys = append(out.keys, groups[i].name)
		out.multi = append(out.multi, operand{form: imagesForm, images: &groups[i]})
	}
	return out
}

// imageGroups are the places of images in an object of the target's kind.
func (l *lowering) imageGroups() []imageGroup {
	var path []string
	switch l.target.GVK.Kind {
	case "Pod":
		path = []string{"spec"}
	case "DaemonSet", "Deployment", "Job", "StatefulSet", "ReplicaSet", "ReplicationController":
		path = []string{"spec", "template", "spec"}
	case "CronJob":
		path = []string{"spec", "jobTemplate", "spec", "template", "spec"}
	default:
		if l.target.KindWild != "" || l.target.GVK.Kind == "" {
			panic(l.unsupported("the images of objects of any kind"))
		}
		return nil
	}
	spec := placeOf(cel.Ident("object"), l.objectType(l.target))
	for _, name := range path {
		spec = spec.field(name)
	}
	if spec.never || spec.dynamic() {
		panic(l.unsupported("the images of a kind whose schema is not known"))
	}
	var out []imageGroup
	for _, name := range []string{"containers", "initContainers", "ephemeralContainers"} {
		out = append(out, imageGroup{name, spec.field(name)})
	}
	return out
}

// containers are a group's containers, none where the list is missing.
func (g *imageGroup) containers() cel.Value { return listOf{v: g.list}.source(false) }

// mapped is body of each of the group's containers that has an image.
func (g *imageGroup) mapped(l *lowering, keep func(c cel.Value) cel.Bool, body func(c cel.Value) cel.Value) cel.Value {
	withImage := func(c cel.Value) cel.Bool { return cel.And(c.Has("image"), keep(c)) }
	return l.binders.MapIf(g.containers(), singular(g.name), withImage, body)
}

func every(cel.Value) cel.Bool { return cel.True() }

// imagesAreValid is: the images of all groups are references.
func (l *lowering) imagesAreValid() cel.Bool {
	defer l.atTop()()
	var all cel.Value
	for i, g := range l.imageGroups() {
		texts := g.mapped(l, every, func(c cel.Value) cel.Value { return c.Field("image") })
		if i == 0 {
			all = texts
		} else {
			all = all.Plus(texts)
		}
	}
	valid := l.binders.All(all, "image", func(x cel.Value) cel.Bool {
		length := cel.Cond(x.Matches(namesRegistry), cel.Int(longestRepository), cel.Int(longestRepository-int64(len(defaultRegistry+"/"))))
		return cel.And(x.Matches(imageReference), found(x, repositoryPart).Size().Compare(cel.LessEqual, length))
	})
	return l.let("imagesAreValid", valid.Value).AsBool()
}

// atTop makes what is built until the function it gives is called free of the
// comprehensions around, as a composed variable is.
func (l *lowering) atTop() func() {
	outer := l.environment
	l.binders = &cel.Scope{}
	return func() { l.environment = outer }
}

// whereImagesLoaded is j, what a query gives, and an error where Kyverno cannot load
// the images: of those that the query reads, and of those that it only mentions.
func (l *lowering) whereImagesLoaded(e *jmespath.Expr, j operand) operand {
	if l.on(native.Delete) || !mentions(e.String(), "images") {
		return j
	}
	if images := l.images(); images.form == errorForm { // the kind has none
		return typeError(images.hint)
	}
	return j
}

// present is: the group has an image.
func (g *imageGroup) present(l *lowering) cel.Bool {
	return g.list.soft(false, cel.Value{}, func(list cel.Value) cel.Bool {
		return l.binders.Exists(list, singular(g.name), func(c cel.Value) cel.Bool { return c.Has("image") })
	})
}

// imageCount is the length of a group; an error where there is none.
func (l *lowering) imageCount(g *imageGroup) operand {
	l.need(g.present(l))
	return intOf(l.withImage(g).Size())
}

// withImage are the containers of a group that have an image.
func (l *lowering) withImage(g *imageGroup) cel.Value {
	defer l.atTop()()
	list := l.binders.Filter(g.containers(), singular(g.name), func(c cel.Value) cel.Bool { return c.Has("image") })
	return l.let(g.name+"WithImage", list)
}
