package interp

import (
	"context"
	"maps"
	"strconv"

	"github.com/kvap/kvap/interp/internal/datum"
	"github.com/kvap/kvap/interp/internal/expr"
	"github.com/kvap/kvap/jmespath"
)

// WithSteps bounds the steps of all JMESPath together that is evaluated with the context, of
// however many policies. Where it is spent, rules that have more err.
func WithSteps(ctx context.Context, steps int64) context.Context { return expr.WithSteps(ctx, steps) }

// evaluate evaluates an expression on all that v has.
func (v *vars) evaluate(e *jmespath.Expr) (expr.Value, error) { return v.evaluateOn(e, v.root()) }

// root is what expressions are evaluated on.
func (v *vars) root() expr.Value {
	return expr.Value{Data: v, From: expr.Provenance{Origin: expr.OfRequest}}
}

// evaluateOn evaluates an expression on data of its own.
func (v *vars) evaluateOn(e *jmespath.Expr, data expr.Value) (expr.Value, error) {
	return expr.Eval(v.ctx, e, data, v.surroundings())
}

// substitute fills in the variables of a template.
func (v *vars) substitute(t *jmespath.Template) (expr.Value, error) {
	return expr.Substitute(v.ctx, t, v, v.surroundings())
}

func (v *vars) surroundings() expr.Surroundings {
	return expr.Surroundings{World: v.world, NormalizeImage: v.normalizeImage}
}

// fillParts fills in the variables of a text that has a structure of its own.
func (v *vars) fillParts(t *text) (expr.Filled, error) {
	tmpl, err := v.ready(t)
	if err != nil {
		return expr.Filled{}, err
	}
	if tmpl.Single() == nil {
		return expr.Fill(v.ctx, tmpl, v, v.surroundings())
	}
	value, err := v.substitute(tmpl)
	if err != nil {
		return expr.Filled{}, err
	}
	s, ok := value.Data.(string)
	if !ok {
		return expr.Filled{}, notText{tmpl.Text, datum.TypeName(value.Data)}
	}
	return expr.WholeText(s, value.From), nil
}

// listOf are the elements of what a loop goes over. What is not a list is its only element.
func (v *vars) listOf(text string, e *jmespath.Expr, bad error) ([]expr.Value, error) {
	if bad != nil {
		return nil, bad
	}
	if err := v.prepare(text); err != nil {
		return nil, err
	}
	value, err := v.evaluate(e)
	if err != nil {
		return nil, err
	}
	list, ok := value.Data.([]any)
	if !ok {
		return []expr.Value{value}, nil
	}
	out := make([]expr.Value, len(list))
	for i, item := range list {
		out[i] = expr.Value{Data: item, From: value.From.Element(i)}
	}
	return out, nil
}

// pushElement opens a level with the variables of an element of a loop, which is within
// others.
func (v *vars) pushElement(element expr.Value, index, within int) {
	depth, at := strconv.Itoa(within), expr.Value{Data: int64(index)}
	v.push(map[string]expr.Value{"element": element, "element" + depth: element, "elementIndex": at, "elementIndex" + depth: at})
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
		for name, value := range l.values {
			all[name] = value.Data
		}
	}
	return all, nil
}
