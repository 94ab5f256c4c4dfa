package cellib

import (
	"fmt"
	"reflect"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
)

// An Image is the reference of an image, taken apart.
type Image struct {
	Registry, Repository, Tag, Digest string
}

// identifier is what tells images of a repository apart.
func (i Image) identifier() string {
	if i.Digest != "" {
		return i.Digest
	}
	return i.Tag
}

func imageType() *cel.Type { return cel.ObjectType("kyverno.image") }

// images is image(), isImage() and the parts of an image.
func images(w World) []cel.EnvOption {
	part := func(name string, result *cel.Type, f func(Image) ref.Val) cel.EnvOption {
		return cel.Function(name, cel.MemberOverload("image_"+name, []*cel.Type{imageType()}, result, cel.UnaryBinding(func(v ref.Val) ref.Val {
			if i, ok := v.(imageValue); ok {
				return f(i.Image)
			}
			return types.MaybeNoSuchOverloadErr(v)
		})))
	}
	text := func(name string, f func(Image) string) cel.EnvOption {
		return part(name, cel.StringType, func(i Image) ref.Val { return types.String(f(i)) })
	}
	read := func(v ref.Val) (Image, error) {
		s, ok := v.(types.String)
		if !ok {
			return Image{}, fmt.Errorf("the reference of an image must be a string")
		}
		return w.Image(string(s))
	}
	return []cel.EnvOption{
		cel.Function("image", cel.Overload("image_string", []*cel.Type{cel.StringType}, imageType(), cel.UnaryBinding(func(v ref.Val) ref.Val {
			i, err := read(v)
			if err != nil {
				return types.NewErr("image: %v", err)
			}
			return imageValue{i}
		}))),
		cel.Function("isImage", cel.Overload("is_image_string", []*cel.Type{cel.StringType}, cel.BoolType, cel.UnaryBinding(func(v ref.Val) ref.Val {
			_, err := read(v)
			return types.Bool(err == nil)
		}))),
		part("containsDigest", cel.BoolType, func(i Image) ref.Val { return types.Bool(i.Digest != "") }),
		text("registry", func(i Image) string { return i.Registry }),
		text("repository", func(i Image) string { return i.Repository }),
		text("identifier", Image.identifier),
		text("tag", func(i Image) string { return i.Tag }),
		text("digest", func(i Image) string { return i.Digest }),
	}
}

// An imageValue is an image in CEL.
type imageValue struct{ Image }

// ConvertToNative implements ref.Val.
func (i imageValue) ConvertToNative(t reflect.Type) (any, error) {
	return nil, fmt.Errorf("an image cannot become a %v", t)
}

// ConvertToType implements ref.Val.
func (i imageValue) ConvertToType(t ref.Type) ref.Val {
	if t.TypeName() == types.TypeType.TypeName() {
		return imageType()
	}
	return types.NewErr("an image cannot become a %s", t.TypeName())
}

// Equal implements ref.Val.
func (i imageValue) Equal(other ref.Val) ref.Val {
	o, ok := other.(imageValue)
	return types.Bool(ok && o.Image == i.Image)
}

// Type implements ref.Val.
func (i imageValue) Type() ref.Type { return imageType() }

// Value implements ref.Val.
func (i imageValue) Value() any { return i.Image }
