package native

import (
	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/schema"
)

// A typeShape is what a schema knows of values.
type typeShape struct{ t *schema.Type }

// ShapeOf is what a type says of its values; nil where that is nothing.
func ShapeOf(t *schema.Type) cel.Shape {
	if t == nil || t.Kind == schema.Any {
		return nil
	}
	return typeShape{t}
}

// Field is a field of an object, or the value of any key of a map.
func (s typeShape) Field(name string) (cel.Shape, bool) {
	switch s.t.Kind {
	case schema.Object:
		if f, ok := s.t.Fields[name]; ok {
			return ShapeOf(f.Type), f.Required && !s.t.Nullable
		}
	case schema.Map:
		return ShapeOf(s.t.Elem), false
	}
	return nil, false
}

// Elem is what a list or map holds.
func (s typeShape) Elem() cel.Shape {
	if s.t.Kind == schema.List || s.t.Kind == schema.Map {
		return ShapeOf(s.t.Elem)
	}
	return nil
}

// ObjectWith is a type that has some fields always.
func ObjectWith(always ...*schema.Field) *schema.Type {
	t := &schema.Type{Kind: schema.Object, Open: true, Fields: map[string]*schema.Field{}}
	for _, f := range always {
		f.Required = true
		t.Fields[f.Name] = f
	}
	return t
}

// RequestShape is the request: fields that are empty are missing.
func RequestShape() cel.Shape {
	text := func(name string) *schema.Field {
		return &schema.Field{Name: name, Type: &schema.Type{Kind: schema.String}}
	}
	kind := func(name, last string) *schema.Field {
		var fields []*schema.Field
		for _, f := range []string{"group", "version", last} {
			fields = append(fields, text(f))
		}
		return &schema.Field{Name: name, Type: ObjectWith(fields...)}
	}
	return ShapeOf(ObjectWith(
		kind("kind", "kind"), kind("requestKind", "kind"), kind("resource", "resource"), kind("requestResource", "resource"),
		text("operation"),
		&schema.Field{Name: "userInfo", Type: ObjectWith(text("username"))},
	))
}

// Nullable tells that the values may be null.
func (s typeShape) Nullable() bool { return s.t.Nullable }

// Kind is the kind of the values at run time, which are never null.
func (s typeShape) Kind() cel.Kind { return Kind(s.t) }

// Kind is the kind of the values of a type, where none of them is null.
func Kind(t *schema.Type) cel.Kind {
	if t == nil || t.Nullable {
		return cel.Unknown
	}
	switch t.Kind {
	case schema.Bool:
		return cel.BoolKind
	case schema.Int, schema.Number:
		return cel.NumberKind
	case schema.String:
		return cel.StringKind
	case schema.List:
		return cel.ListKind
	case schema.Map, schema.Object:
		return cel.MapKind
	}
	return cel.Unknown
}

// IsShape asks for shapes whose type is something.
func IsShape(is func(*schema.Type) bool) func(cel.Shape) bool {
	return func(s cel.Shape) bool {
		t, ok := s.(typeShape)
		return ok && is(t.t)
	}
}
