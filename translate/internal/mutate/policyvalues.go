package mutate

import (
	"slices"
	"strings"

	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/schema"
	"github.com/kvap/kvap/translate/internal/native"
	"github.com/kvap/kvap/translate/internal/read"
	"github.com/kvap/kvap/vap"
)

// What a MutatingPolicy writes, and what an API server makes of it.

// putsParts tells that a mutation may write a part of an object of some matched kind. Objects of
// custom kinds are no Go structs.
func (w *mutatingWalk) putsParts(v cel.Value) bool {
	v = vap.Inlined(v, w.Draft.Variables)
	namespace := native.ShapeOf(w.Opts.Schemas.Type(schema.GVK{Version: "v1", Kind: "Namespace"}))
	return !w.ofEachKind(func(k matchedKind) bool {
		if w.Opts.Schemas.Custom(k.gvk) {
			return true
		}
		shape := native.ShapeOf(k.typ)
		c := cel.Checker{Roots: []cel.Root{
			{Name: "object", Shape: shape}, {Name: "oldObject", Shape: shape}, {Name: "namespaceObject", Shape: namespace},
			{Name: "request", Shape: native.ShapeOf(requestType())},
		}}
		return !c.Puts(v, native.IsShape(func(t *schema.Type) bool {
			return t.Kind != schema.Object && t.Kind != schema.List && t.Kind != schema.Map && t.Kind != schema.Any
		}))
	})
}

// requestType has what is known of a request.
func requestType() *schema.Type {
	object := func(names ...string) *schema.Type {
		out := &schema.Type{Kind: schema.Object, Fields: map[string]*schema.Field{}}
		for _, name := range names {
			out.Fields[name] = &schema.Field{Name: name, Type: read.StringType()}
		}
		return out
	}
	out := object("uid", "subResource", "requestSubResource", "name", "namespace", "operation")
	for name, t := range map[string]*schema.Type{
		"kind": object("group", "version", "kind"), "resource": object("group", "version", "resource"), "userInfo": object("username", "uid"),
		"requestKind": object("group", "version", "kind"), "requestResource": object("group", "version", "resource"), "dryRun": {Kind: schema.Bool},
	} {
		out.Fields[name] = &schema.Field{Name: name, Type: t}
	}
	return out
}

// isMadeKey tells of a path to a label or an annotation, whatever its key.
func isMadeKey(path cel.Value) bool {
	return strings.HasPrefix(path.Prefix(), "/metadata/labels/") || strings.HasPrefix(path.Prefix(), "/metadata/annotations/")
}

// typeAt is the type at a path; false where there is none.
func typeAt(t *schema.Type, steps []string) (*schema.Type, bool) {
	for _, step := range steps {
		if t == nil || t.Kind == schema.Any {
			return nil, true
		}
		switch t.Kind {
		case schema.Object:
			f, ok := t.Fields[step]
			if !ok {
				return nil, t.Open
			}
			t = f.Type
		case schema.Map:
			t = t.Elem
		case schema.List:
			if step != cel.AnyStep && step != "-" && strings.Trim(step, "0123456789") != "" {
				return nil, false
			}
			t = t.Elem
		default:
			return nil, false
		}
	}
	return t, true
}

// fits tells that the API server decodes a value at a place of a type, as far as it is known.
func fits(v cel.Value, t *schema.Type) bool {
	if t == nil || t.Kind == schema.Any {
		return true
	}
	how, names, parts := v.Made()
	each := func(t *schema.Type) bool {
		return !slices.ContainsFunc(parts, func(part cel.Value) bool { return !fits(part, t) })
	}
	switch how {
	case cel.MadeChoice:
		return each(t)
	case cel.MadeList, cel.MadeEach:
		return t.Kind == schema.List && each(t.Elem)
	case cel.MadeMap:
		if t.Kind == schema.Map {
			return each(t.Elem)
		}
		for i, name := range names {
			f, ok := t.Fields[name]
			if t.Kind != schema.Object || !ok && !t.Open || ok && !fits(parts[i], f.Type) {
				return false
			}
		}
		return t.Kind == schema.Object
	}
	switch v.LiteralType() {
	case "string":
		return t.Kind == schema.String || t.Kind == schema.IntOrString
	case "int":
		return t.Kind == schema.Int || t.Kind == schema.Number || t.Kind == schema.IntOrString || read.IsQuantityType(t)
	case "double":
		return t.Kind == schema.Number || read.IsQuantityType(t)
	case "bool":
		return t.Kind == schema.Bool
	}
	return true
}
