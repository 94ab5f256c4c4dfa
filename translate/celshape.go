package translate

import (
	"maps"

	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/schema"
)

// A typeShape is what a schema knows of values.
type typeShape struct{ t *schema.Type }

func shapeOf(t *schema.Type) cel.Shape {
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
			return shapeOf(f.Type), f.Required && !s.t.Nullable
		}
	case schema.Map:
		return shapeOf(s.t.Elem), false
	}
	return nil, false
}

// Elem is what a list or map holds.
func (s typeShape) Elem() cel.Shape {
	if s.t.Kind == schema.List || s.t.Kind == schema.Map {
		return shapeOf(s.t.Elem)
	}
	return nil
}

// objectType is a type that has some fields always.
func objectType(always ...*schema.Field) *schema.Type {
	t := &schema.Type{Kind: schema.Object, Open: true, Fields: map[string]*schema.Field{}}
	for _, f := range always {
		f.Required = true
		t.Fields[f.Name] = f
	}
	return t
}

// requestShape is the request: fields that are empty are missing.
func requestShape() cel.Shape {
	kind := func(name, last string) *schema.Field {
		var fields []*schema.Field
		for _, f := range []string{"group", "version", last} {
			fields = append(fields, &schema.Field{Name: f, Type: stringType()})
		}
		return &schema.Field{Name: name, Type: objectType(fields...)}
	}
	return shapeOf(objectType(
		kind("kind", "kind"), kind("requestKind", "kind"), kind("resource", "resource"), kind("requestResource", "resource"),
		&schema.Field{Name: "operation", Type: stringType()},
		&schema.Field{Name: "userInfo", Type: objectType(&schema.Field{Name: "username", Type: stringType()})},
	))
}

// namespaceType is the type of namespaceObject.
func (l *lowering) namespaceType() *schema.Type {
	return objectType(&schema.Field{Name: "metadata", Type: l.namedMeta()})
}

// objectShape is an object of the target, which has a name: the API server has
// generated it before it asks.
func (l *lowering) objectShape() cel.Shape {
	if l.target.scope == namespaced {
		return l.shapeOfObject("namespace")
	}
	return l.shapeOfObject()
}

// shapeOfObject is an object of the target with a name, and some more fields of its
// metadata that it always has.
func (l *lowering) shapeOfObject(more ...string) cel.Shape {
	t := l.objectType(l.target) // a copy
	if _, ok := t.Fields["metadata"]; ok {
		t.Fields["metadata"] = &schema.Field{Name: "metadata", Type: l.namedMeta(more...), Required: true}
	}
	return shapeOf(t)
}

// namedMeta is the metadata of an object with a name, and some more fields that it
// always has.
func (l *lowering) namedMeta(more ...string) *schema.Type {
	t := *l.objectMeta()
	t.Fields = maps.Clone(t.Fields)
	for _, name := range append(more, "name") {
		t.Fields[name] = &schema.Field{Name: name, Type: stringType(), Required: true}
	}
	return &t
}

// isTotal tells that a condition is never an error on the walk's operations. A request
// that was recorded may be about an object without a namespace.
func (l *lowering) isTotal(b cel.Bool) bool {
	own := l.shapeOfObject()
	return b.IsTotal(cel.Surroundings{Variables: l.defined, Roots: []cel.Root{
		{Name: "object", Shape: own, Null: l.on(opDelete)},
		{Name: "oldObject", Shape: own, Null: l.on(opCreate) || l.on(opConnect)},
		{Name: "request", Shape: requestShape()},
	}})
}
