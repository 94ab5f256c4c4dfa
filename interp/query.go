package interp

import (
	"maps"

	"github.com/kvap/kvap/interp/internal/datum"
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
	return expr.Surroundings{World: v.world, NormalizeImage: v.normalizeImage, Untrusted: v.untrusted}
}

// untrusted tells of a variable whose value comes from the request.
func (v *vars) untrusted(one *jmespath.Variable) bool {
	return v.ofRequest(templateRoots(&jmespath.Template{Parts: []jmespath.Part{{Var: one}}}))
}

// fillParts fills in the variables of a text that has a structure of its own.
func (v *vars) fillParts(t *text) (expr.Filled, error) {
	tmpl, err := v.ready(t)
	if err != nil {
		return expr.Filled{}, err
	}
	single := tmpl.Single()
	if single == nil {
		return expr.Fill(v.ctx, tmpl, v, v.surroundings())
	}
	value, err := v.substitute(tmpl)
	if err != nil {
		return expr.Filled{}, err
	}
	s, ok := value.(string)
	if !ok {
		return expr.Filled{}, notText{tmpl.Text, datum.TypeName(value)}
	}
	return expr.WholeText(s, v.untrusted(single)), nil
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
