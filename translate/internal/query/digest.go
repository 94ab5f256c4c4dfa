package query

import (
	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/schema"
	"github.com/kvap/kvap/translate/internal/native"
	"github.com/kvap/kvap/translate/internal/read"
)

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
