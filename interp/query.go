package interp

import (
	"maps"

	"github.com/kvap/kvap/jmespath"
)

// evaluate evaluates an expression on all that v has.
func evaluate(e *jmespath.Expr, v *vars) (any, error) {
	return eval(v.ctx, e, v, v.surroundings())
}

// evaluateOn evaluates an expression on data of its own.
func evaluateOn(e *jmespath.Expr, data any, v *vars) (any, error) {
	return eval(v.ctx, e, data, v.surroundings())
}

func (v *vars) surroundings() surroundings {
	return surroundings{ctx: v.ctx, world: v.world, defaultRegistry: v.registry}
}

// snapshot is everything that is loaded, for an @ at the root.
func (v *vars) snapshot() (map[string]any, error) {
	all := maps.Clone(v.request)
	for _, l := range v.levels {
		maps.Copy(all, l.values)
	}
	return all, nil
}
