package cellib

import (
	"strings"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/ext"
	"github.com/google/go-containerregistry/pkg/name"
)

// An image is the reference of an image, taken apart.
type image struct {
	registry, repository, identifier, tag, digest string
}

func imageType() *cel.Type { return cel.ObjectType("kyverno.image") }

// readImage takes a reference apart: a repository without a registry is one of
// index.docker.io, there one without a folder is in library, and a reference without tag
// and digest is of the tag latest.
func readImage(reference string) (image, error) {
	ref, err := name.ParseReference(reference)
	if err != nil {
		return image{}, err
	}
	out := image{registry: ref.Context().RegistryStr(), repository: ref.Context().RepositoryStr(), identifier: ref.Identifier()}
	switch ref := ref.(type) {
	case name.Tag:
		out.tag = ref.TagStr()
	case name.Digest:
		out.digest = ref.DigestStr()
	}
	return out, nil
}

// imageFunctions are references of images and their parts.
func imageFunctions() []libraryFunction {
	part := func(name string, f func(image) string) libraryFunction {
		return libraryFunction{names: []string{name}, on: imageType(), result: textType(), call: func(_ asker, args []any) (any, error) { return f(args[0].(image)), nil }}
	}
	return []libraryFunction{
		{names: []string{"parseImageReference", "image"}, args: []*cel.Type{textType()}, result: imageType(), call: func(_ asker, args []any) (any, error) {
			return readImage(args[0].(string))
		}},
		{names: []string{"isImage"}, args: []*cel.Type{textType()}, result: cel.BoolType, call: func(_ asker, args []any) (any, error) {
			_, err := readImage(args[0].(string))
			return err == nil, nil
		}},
		part("registry", func(i image) string { return i.registry }),
		part("repository", func(i image) string { return i.repository }),
		part("identifier", func(i image) string { return i.identifier }),
		part("tag", func(i image) string { return i.tag }),
		part("digest", func(i image) string { return i.digest }),
		{names: []string{"containsDigest"}, on: imageType(), result: cel.BoolType, call: func(_ asker, args []any) (any, error) {
			return args[0].(image).digest != "", nil
		}},
		{names: both("image", "GetMetadata"), args: []*cel.Type{textType()}, result: cel.DynType, call: imageMetadata},
	}
}

// imageMetadata is what a registry knows of an image, under the names that CEL has for it.
func imageMetadata(w asker, args []any) (any, error) {
	ctx, cancel := waiting()
	defer cancel()
	reference := args[0].(string)
	found, err := w.Metadata(ctx, reference)
	if err != nil {
		return nil, err
	}
	return metadataOf(reference, found, doubles), nil
}

// metadataOf is what a registry knows of a reference, under the names that CEL has for it.
func metadataOf(reference string, found map[string]any, number func(any) any) map[string]any {
	out := map[string]any{}
	for key, value := range found {
		switch key {
		case "configData":
			key = "config"
		case "manifestList":
			key = "imageIndex"
		}
		if value != nil && value != "" {
			out[key] = number(value)
		}
	}
	if ref, err := readImage(reference); err == nil {
		for key, value := range map[string]string{"tag": ref.tag, "digest": ref.digest} {
			if _, ok := out[key]; !ok && value != "" {
				out[key] = value
			}
		}
	}
	return out
}

// ReferenceFunctions are what expressions have that see the reference of an image and nothing
// else.
func ReferenceFunctions() []cel.EnvOption {
	out := []cel.EnvOption{
		cel.DefaultUTCTimeZone(true), cel.CrossTypeNumericComparisons(true), cel.OptionalTypes(),
		ext.Strings(ext.StringsVersion(2)), ext.Sets(), ext.Lists(ext.ListsVersion(3)), ext.Bindings(), ext.Encoders(), ext.Math(), ext.Regex(),
	}
	for _, e := range imageFunctions() {
		if strings.HasPrefix(e.names[0], "image.") { // asks a registry
			continue
		}
		for _, name := range e.names {
			out = append(out, e.declare(name, asker{}))
		}
	}
	return out
}
