package pack

import (
	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/schema"
	"github.com/kvap/kvap/translate/internal/native"
)

// checkers are what the API server's type checker makes of the kinds of a group.
// CEL that the user wrote is left as it is.
func (g group) checkers() []cel.Checker {
	if g.units[0].CEL != nil {
		return nil
	}
	var out []cel.Checker
	for _, t := range g.targets {
		if shape := native.ShapeOf(t.Type); shape != nil {
			out = append(out, cel.Checker{
				Roots:  []cel.Root{{Name: "object", Shape: shape}, {Name: "oldObject", Shape: shape}},
				Hidden: native.IsShape((*schema.Type).HoldsQuantities), // which a cluster says are texts or numbers: no type to the checker
				Struct: native.IsShape(structured),
			})
		}
	}
	return out
}

// structured tells of objects, and of lists and maps of them.
func structured(t *schema.Type) bool {
	if t == nil {
		return false
	}
	return t.Kind == schema.Object || structured(t.Elem)
}
