package celrule

import (
	"maps"

	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/schema"
	"github.com/kvap/kvap/translate/internal/native"
	"github.com/kvap/kvap/translate/internal/partial"
	"github.com/kvap/kvap/translate/internal/read"
)

// namespaceType is the type of namespaceObject.
func namespaceType(l *read.Lowering) *schema.Type {
	return native.ObjectWith(&schema.Field{Name: "metadata", Type: namedMeta(l)})
}

// objectShape is an object of the target, which has a name: the API server has
// generated it before it asks.
func objectShape(l *read.Lowering) cel.Shape {
	if l.Target.Scope == native.Namespaced {
		return shapeOfObject(l, "namespace")
	}
	return shapeOfObject(l)
}

// shapeOfObject is an object of the target with a name, and some more fields of its
// metadata that it always has.
func shapeOfObject(l *read.Lowering, more ...string) cel.Shape {
	t := read.ObjectType(l, l.Target) // a copy
	if l.Rule.Mutate != nil {         // before it has a name
		return native.ShapeOf(t)
	}
	if _, ok := t.Fields["metadata"]; ok {
		t.Fields["metadata"] = &schema.Field{Name: "metadata", Type: namedMeta(l, more...), Required: true}
	}
	return native.ShapeOf(t)
}

// namedMeta is the metadata of an object with a name, and some more fields that it
// always has.
func namedMeta(l *read.Lowering, more ...string) *schema.Type {
	t := *l.Opts.Schemas.ObjectMeta()
	t.Fields = maps.Clone(t.Fields)
	for _, name := range append(more, "name") {
		t.Fields[name] = &schema.Field{Name: name, Type: read.StringType(), Required: true}
	}
	return &t
}

// IsTotal tells that a condition is never an error on the walk's operations.
func IsTotal(l *read.Lowering, b cel.Bool) bool {
	return b.IsTotal(surroundings(l, l.Environment))
}

// Simplified says t in a shorter way that says the same on the operations of e.
func Simplified(l *read.Lowering, t partial.Bool, e read.Environment) partial.Bool {
	around := surroundings(l, e)
	t.Expr = t.Expr.SimplifyIn(around)
	if t.Errs && !t.Expr.IsTotal(around) {
		return t
	}
	return partial.Sure(t.Expr.Counted())
}

// surroundings is what is known of the request on the operations of e. One that was
// recorded may be about an object without a namespace.
func surroundings(l *read.Lowering, e read.Environment) cel.Surroundings {
	own := shapeOfObject(l)
	return cel.Surroundings{Variables: func(name string) (cel.Value, bool) { return read.Defined(l, name) }, Roots: []cel.Root{
		{Name: "object", Shape: own, Null: e.On(native.Delete)},
		{Name: "oldObject", Shape: own, Null: e.On(native.Create) || e.On(native.Connect)},
		{Name: "request", Shape: native.RequestShape()},
	}}
}
