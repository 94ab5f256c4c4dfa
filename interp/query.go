package interp

import (
	"maps"

	"github.com/kvap/kvap/interp/internal/expr"
	"github.com/kvap/kvap/jmespath"
)

// evaluate evaluates an expression on all that v has.
func (v *vars) evaluate(e *jmespath.Expr) (any, error) { return v.evaluateOn(e, v) }

// evaluateOn evaluates an expression on data of its own.
func (v *vars) evaluateOn(e *jmespath.Expr, data any) (any, error) {
	return expr.Eval(v.ctx, e, data, v.surroundings())
}

// substitute fills in the variables of a template.
func (v *vars) substitute(t *jmespath.Template) (any, error) {
	return expr.Substitute(v.ctx, t, v, v.surroundings())
}

func (v *vars) surroundings() expr.Surroundings {
	return expr.Surroundings{World: v.world, NormalizeImage: v.normalizeImage}
}

func (v *vars) normalizeImage(reference string) (string, error) {
	img, err := parseImage(reference, v.registry)
	if err != nil {
		return "", err
	}
	return img.reference(), nil
}

// Whole is everything that is loaded, for an @ at the root.
func (v *vars) Whole() (map[string]any, error) {
	all := maps.Clone(v.request)
	for _, l := range v.levels {
		maps.Copy(all, l.values)
	}
	return all, nil
}
