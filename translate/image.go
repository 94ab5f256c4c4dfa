package translate

import (
	"strings"

	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/jmespath"
	"github.com/kvap/kvap/schema"
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
	list val    // in the object
	path string // to the list, as a JSON pointer
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
func (l *lowering) images() jval {
	if l.rule.ImageExtractors.Get(l.target.gvk.Kind) != nil {
		panic(l.unsupported("an imageExtractor of the rule's own"))
	}
	groups := l.imageGroups()
	if len(groups) == 0 || l.on("DELETE") {
		return jval{form: errorForm, hint: "images"}
	}
	l.readsImages = true
	if l.found != nil {
		*l.found = append(*l.found, l.imagesAreValid())
	} else {
		l.errs = true
	}
	out := jval{form: hashForm}
	for i := range groups {
		out.keys = append(out.keys, groups[i].name)
		out.multi = append(out.multi, jval{form: imagesForm, images: &groups[i]})
	}
	return out
}

// imageGroups are the places of images in an object of the target's kind.
func (l *lowering) imageGroups() []imageGroup {
	var path []string
	switch l.target.gvk.Kind {
	case "Pod":
		path = []string{"spec"}
	case "DaemonSet", "Deployment", "Job", "StatefulSet", "ReplicaSet", "ReplicationController":
		path = []string{"spec", "template", "spec"}
	case "CronJob":
		path = []string{"spec", "jobTemplate", "spec", "template", "spec"}
	default:
		if l.target.kindWild != "" || l.target.gvk.Kind == "" {
			panic(l.unsupported("the images of objects of any kind"))
		}
		return nil
	}
	spec, pointer := at(cel.Ident("object"), l.rootType(l.target)), ""
	for _, name := range path {
		spec, pointer = spec.field(name), pointer+"/"+name
	}
	if spec.never || spec.dynamic() {
		panic(l.unsupported("the images of a kind whose schema is not known"))
	}
	var out []imageGroup
	for _, name := range []string{"containers", "initContainers", "ephemeralContainers"} {
		out = append(out, imageGroup{name, spec.field(name), pointer + "/" + name})
	}
	return out
}

// containers are a group's containers, none where the list is missing.
func (g *imageGroup) containers() cel.Value { return listOf{v: g.list}.source(false) }

// mapped is body of each of the group's containers that has an image.
func (g *imageGroup) mapped(l *lowering, keep func(c cel.Value) cel.Bool, body func(c cel.Value) cel.Value) cel.Value {
	c := l.b.take(singular(g.name))
	defer delete(l.b.taken, c)
	x := cel.Ident(c)
	return g.containers().Macro2("map", []string{c}, cel.And(x.Has("image"), keep(x)).Value, body(x))
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
	valid := l.b.all(all, "image", func(x cel.Value) cel.Bool {
		length := cel.Cond(x.Matches(namesRegistry), cel.Int(longestRepository), cel.Int(longestRepository-int64(len(defaultRegistry+"/"))))
		return cel.And(x.Matches(imageReference), found(x, repositoryPart).Size().Compare("<=", length))
	})
	return l.let("imagesAreValid", valid.Value).AsBool()
}

// atTop makes what is built until the function it gives is called free of the
// comprehensions around, as a composed variable is.
func (l *lowering) atTop() func() {
	saved := l.b
	l.b = &binders{}
	return func() { l.b = saved }
}

// ifValid is v, and an error where an image of the object is no reference.
func (l *lowering) ifValid(v cel.Value) cel.Value {
	return cel.Cond(l.imagesAreValid(), v, dyn(cel.Map()).Field(invalidImage))
}

// readValid is j of a query that reads images. Kyverno reads them before it
// evaluates the query, so one that gets by without them is an error all the same
// where they are no references.
func (l *lowering) readValid(e *jmespath.Expr, j jval) jval {
	if readsFirst(e, "images") {
		return j
	}
	return choice(l.imagesAreValid(), j, typeError(invalidImage))
}

// readsFirst tells that whoever evaluates the expression evaluates the name first.
func readsFirst(e *jmespath.Expr, name string) bool {
	switch e.Op {
	case jmespath.Field:
		return e.Name == name
	case jmespath.Sub, jmespath.Pipe, jmespath.Index, jmespath.Flatten, jmespath.Projection, jmespath.ValueProjection, jmespath.Filter, jmespath.Or:
		return readsFirst(e.Args[0], name)
	}
	return false
}

// present is: the group has an image.
func (g *imageGroup) present(l *lowering) cel.Bool {
	return g.list.soft(false, cel.Value{}, func(list cel.Value) cel.Bool {
		return l.b.exists(list, singular(g.name), func(c cel.Value) cel.Bool { return c.Has("image") })
	})
}

// imagePresent is: the group, or the image, is there.
func (l *lowering) imagePresent(j jval) cel.Bool {
	switch {
	case j.form == imagesForm:
		return j.images.present(l)
	case j.key.IsZero():
		return cel.True()
	}
	return l.b.exists(l.ifValidContainers(j.images), singular(j.images.name), func(c cel.Value) cel.Bool { return c.Field("name").Eq(j.key) })
}

// imageCount is the length of a group; an error where there is none.
func (l *lowering) imageCount(g *imageGroup) jval {
	return choice(g.present(l), intOf(l.ifValidContainers(g).Size()), typeError("length"))
}

// probeImages is b, which does not depend on images that it is about, where they
// are references.
func (l *lowering) probeImages(b cel.Bool) cel.Bool {
	if !l.readsImages {
		return b
	}
	return cel.CondBool(l.imagesAreValid(), b, l.failing(typeError(invalidImage)))
}

// named is the image of the container with a name.
func (g *imageGroup) named(key cel.Value) jval {
	return jval{form: imageForm, images: g, key: key}
}

// imagePart is a part of one image, or of the image at hand in a projection.
func (l *lowering) imagePart(j jval, name string) jval {
	part, ok := imagePartNamed(name)
	if !ok {
		return jval{form: errorForm, hint: name}
	}
	if j.key.IsZero() { // the container is at hand
		w := at(part.text(j.images, j.v.expr), stringType())
		if part.has != nil {
			w.guards = []guard{{cond: part.has(j.v.expr.Field("image"))}}
		}
		return valOf(w)
	}
	hasPart := func(c cel.Value) cel.Bool {
		is := c.Field("name").Eq(j.key)
		if part.has == nil {
			return is
		}
		return cel.And(is, part.has(c.Field("image")))
	}
	list := l.ifValidContainers(j.images)
	binder := singular(j.images.name)
	x := l.b.take(binder)
	c := cel.Ident(x)
	value := list.Macro2("map", []string{x}, hasPart(c).Value, part.text(j.images, c)).Index(cel.Int(0))
	delete(l.b.taken, x)
	exists := l.b.exists(list, binder, hasPart)
	return valOf(val{expr: value, typ: stringType(), guards: []guard{{cond: exists}}})
}

// ifValidContainers are the containers of a group that have an image, an error
// where an image is no reference.
func (l *lowering) ifValidContainers(g *imageGroup) cel.Value {
	defer l.atTop()()
	list := l.b.filter(g.containers(), singular(g.name), func(c cel.Value) cel.Bool { return c.Has("image") })
	return l.let(g.name+"WithImage", l.ifValid(list))
}

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
			index := cel.Func("string", g.list.expr.Call("indexOf", c))
			return cel.String(g.path + "/").Plus(index).Plus(cel.String("/image"))
		}}, true
	}
	return imagePart{}, false
}

func found(x cel.Value, re string) cel.Value { return x.Call("find", cel.String(re)) }

// beforeDigest is a reference without its digest.
func beforeDigest(x cel.Value) cel.Value { return x.Call("split", cel.String("@")).Index(cel.Int(0)) }

func imageRegistry(x cel.Value) cel.Value {
	return cel.Cond(x.Matches(namesRegistry), x.Call("split", cel.String("/")).Index(cel.Int(0)), cel.String(defaultRegistry))
}

func imagePath(x cel.Value) cel.Value {
	repository := found(x, repositoryPart)
	after := repository.Call("substring", repository.Call("indexOf", cel.String("/")).Plus(cel.Int(1)))
	return cel.Cond(x.Matches(namesRegistry), after, repository)
}

func imageName(x cel.Value) cel.Value {
	return found(beforeDigest(x), `[^/]+$`).Call("split", cel.String(":")).Index(cel.Int(0))
}

// hasTag is false for an image that has a digest only.
func hasTag(x cel.Value) cel.Bool { return cel.Not(x.Matches(digestOnly)) }

func imageTag(x cel.Value) cel.Value {
	return cel.Cond(x.Matches(bareImage), cel.String("latest"), found(beforeDigest(x), `[^:]+$`))
}

func hasDigest(x cel.Value) cel.Bool { return x.Contains(cel.String("@")) }

func imageDigest(x cel.Value) cel.Value { return x.Call("split", cel.String("@")).Index(cel.Int(1)) }

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

// imageParts is the same part of each image of a group, ordered by the names of
// the containers.
type imageParts struct {
	listOf
	group *imageGroup
	part  imagePart
}

// projectImages is group.*.right; false where that is no single part.
func (l *lowering) projectImages(g *imageGroup, right *jmespath.Expr) (jval, bool) {
	if right.Op != jmespath.Field || right.Dynamic != nil {
		return jval{}, false
	}
	part, ok := imagePartNamed(right.Name)
	if !ok {
		return streamOf(whereGroup{concat{}, g, l}), true
	}
	defer l.atTop()()
	keep := every
	if part.has != nil {
		keep = func(c cel.Value) cel.Bool { return part.has(c.Field("image")) }
	}
	texts := l.ifValid(g.mapped(l, keep, func(c cel.Value) cel.Value { return part.text(g, c) }))
	name := g.name[:len(g.name)-1] + part.plural
	list := listOf{v: at(l.let(name, texts), &schema.Type{Kind: schema.List, Elem: stringType()}), hint: part.plural}
	parts := imageParts{list, g, part}
	return streamOf(whereGroup{parts, g, l}), true
}

// whereGroup is a list that is null where the group has no images; it is empty then.
type whereGroup struct {
	stream
	group *imageGroup
	l     *lowering
}

func (s whereGroup) null() cel.Bool { return cel.Not(s.group.present(s.l)) }

// imageItem is an element of a list of parts by its place: the first or the last.
func (l *lowering) imageItem(j jval, n int) (jval, bool) {
	where, ok := j.s.(whereGroup)
	if !ok {
		return jval{}, false
	}
	parts, ok := where.stream.(imageParts)
	if !ok {
		return jval{}, false
	}
	return parts.item(l, n)
}

// list is in the order of the containers' names.
func (s imageParts) list(l *lowering, _ bool) (cel.Value, bool) {
	if !l.release.Has("sortBy") {
		return cel.Value{}, false
	}
	containers := s.containers(l)
	c := l.b.take(singular(s.group.name))
	sorted := containers.Macro("sortBy", c, cel.Ident(c).Field("name"))
	delete(l.b.taken, c)
	return l.b.mapped(sorted, singular(s.group.name), func(c cel.Value) cel.Value { return s.part.text(s.group, c) }), true
}

// containers are those whose images have the part.
func (s imageParts) containers(l *lowering) cel.Value {
	all := l.ifValidContainers(s.group)
	if s.part.has == nil {
		return all
	}
	return l.b.filter(all, singular(s.group.name), func(c cel.Value) cel.Bool { return s.part.has(c.Field("image")) })
}

// item is the first or the last of the list, which every release can say.
func (s imageParts) item(l *lowering, n int) (jval, bool) {
	best := map[int]string{0: "min", -1: "max"}[n]
	if best == "" {
		return jval{}, false
	}
	some := s.containers(l).Size().Compare(">", cel.Int(0))
	text := s.part.text(s.group, s.outermost(l, best))
	return valOf(val{expr: text, typ: stringType(), guards: []guard{{cond: some, shape: true}}}), true
}

// outermost is the container whose name is the first or the last.
func (s imageParts) outermost(l *lowering, best string) cel.Value {
	defer l.atTop()()
	containers := s.containers(l)
	which := map[string]string{"min": "first", "max": "last"}[best] + capital(s.group.name[:len(s.group.name)-1])
	names := l.b.mapped(containers, singular(s.group.name), func(c cel.Value) cel.Value { return c.Field("name") })
	name := l.let(which+"Name", names.Call(best))
	only := l.b.filter(containers, singular(s.group.name), func(c cel.Value) cel.Bool { return c.Field("name").Eq(name) })
	return l.let(which, only.Index(cel.Int(0)))
}

func capital(s string) string { return strings.ToUpper(s[:1]) + s[1:] }

// imageValues is a group's images as the values of a projection.
type imageValues struct{ group *imageGroup }

func (s imageValues) quantify(l *lowering, macro string, _ bool, body func(jval) cel.Bool) cel.Bool {
	return l.b.quantify(macro, l.ifValidContainers(s.group), singular(s.group.name), func(c cel.Value) cel.Bool {
		return body(jval{form: imageForm, images: s.group, v: at(c, s.group.list.elem())})
	})
}

func (s imageValues) count(l *lowering, _ bool) cel.Value { return l.ifValidContainers(s.group).Size() }

func (s imageValues) list(*lowering, bool) (cel.Value, bool) { return cel.Value{}, false }

func (s imageValues) null() cel.Bool { return cel.False() }

func (s imageValues) elem() *schema.Type { return anyType() }

// imageProjection is group.*, and right of each image.
func (l *lowering) imageProjection(g *imageGroup, right *jmespath.Expr) jval {
	if j, ok := l.projectImages(g, right); ok {
		return j
	}
	if !keepsNull(right) {
		panic(l.refuse(diag.NoExpression, "a projection over images that makes something of null"))
	}
	var s stream = imageValues{g}
	if right.Op != jmespath.Current {
		s = mapped{l: l, of: s, f: func(l *lowering, x jval) jval { return l.perElement(right, x) }}
	}
	return streamOf(whereGroup{s, g, l})
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

// query is an expression on the whole context.
func (l *lowering) query(e *jmespath.Expr) jval {
	before := l.readsImages
	l.readsImages = false
	j := l.eval(e, nil)
	if l.readsImages {
		j = l.readValid(e, j)
	}
	l.readsImages = l.readsImages || before
	return j
}
