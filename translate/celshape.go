package translate

import (
	"maps"

	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/schema"
	"github.com/kvap/kvap/translate/internal/native"
)

// namespaceType is the type of namespaceObject.
func (l *lowering) namespaceType() *schema.Type {
	return native.ObjectWith(&schema.Field{Name: "metadata", Type: l.namedMeta()})
}

// objectShape is an object of the target, which has a name: the API server has
// generated it before it asks.
func (l *lowering) objectShape() cel.Shape {
	if l.target.Scope == native.Namespaced {
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
	return native.ShapeOf(t)
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
		{Name: "object", Shape: own, Null: l.on(native.Delete)},
		{Name: "oldObject", Shape: own, Null: l.on(native.Create) || l.on(native.Connect)},
		{Name: "request", Shape: native.RequestShape()},
	}})
}
