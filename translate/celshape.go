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
	if l.rule.Mutate != nil {   // before it has a name
		return native.ShapeOf(t)
	}
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

// isTotal tells that a condition is never an error on the walk's operations.
func (l *lowering) isTotal(b cel.Bool) bool {
	return b.IsTotal(l.surroundings(l.environment))
}

// simplified says t in a shorter way that says the same on the operations of e.
func (l *lowering) simplified(t native.Truth, e environment) native.Truth {
	around := l.surroundings(e)
	t.Expr = t.Expr.SimplifyIn(around)
	t.Errs = t.Errs && !t.Expr.IsTotal(around)
	return t
}

// surroundings is what is known of the request on the operations of e. One that was
// recorded may be about an object without a namespace.
func (l *lowering) surroundings(e environment) cel.Surroundings {
	own := l.shapeOfObject()
	return cel.Surroundings{Variables: l.defined, Roots: []cel.Root{
		{Name: "object", Shape: own, Null: e.on(native.Delete)},
		{Name: "oldObject", Shape: own, Null: e.on(native.Create) || e.on(native.Connect)},
		{Name: "request", Shape: native.RequestShape()},
	}}
}
