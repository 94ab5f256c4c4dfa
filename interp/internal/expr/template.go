package expr

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/interp/internal/datum"
	"github.com/kvap/kvap/jmespath"
)

// A variableError is a variable that could not be resolved.
type variableError struct {
	raw string
	err error
}

func (e *variableError) Error() string { return fmt.Sprintf("failed to resolve %s: %v", e.raw, e.err) }

// Unwrap gives the reason.
func (e *variableError) Unwrap() error { return e.err }

// Substitute fills in the variables of a template. One that is the whole string
// keeps the type of its value; others are put in as text. What they give is not
// searched for further variables (deviation 5). References must have been
// resolved before.
func Substitute(ctx context.Context, t *jmespath.Template, s Scope, around Surroundings) (Value, error) {
	ev := newEvaluator(ctx, scopeValue(s), around)
	defer ev.settle()
	return ev.substitute(t)
}

func (ev *evaluator) substitute(t *jmespath.Template) (Value, error) {
	if v := t.Single(); v != nil {
		return ev.variable(v)
	}
	return ev.text(t)
}

// text fills in the variables of a template as text.
func (ev *evaluator) text(t *jmespath.Template) (Value, error) {
	f, err := ev.fill(t)
	return Value{f.Text, f.From()}, err
}

// embedded is a variable as part of a string.
func (ev *evaluator) embedded(v *jmespath.Variable) (text string, from Provenance, err error) {
	value, err := ev.variable(v)
	if err != nil {
		return "", Provenance{}, err
	}
	if s, ok := value.Data.(string); ok {
		return s, value.From.printed(), nil
	}
	if v.Shallow {
		return "", Provenance{}, &variableError{v.Raw, fmt.Errorf("a {{- variable in a text must be a string, not %s", datum.TypeName(value.Data))}
	}
	text, err = ev.json(value.Data)
	if err != nil {
		return "", Provenance{}, &variableError{v.Raw, err}
	}
	return text, value.From.printed(), nil
}

// json is the JSON text of a value, with <, > and & escaped as Go does.
func (ev *evaluator) json(v any) (string, error) {
	plain, err := ev.plain(v)
	if err != nil {
		return "", err
	}
	if err := ev.measure(plain); err != nil {
		return "", err
	}
	if datum.JSONSize(plain, maxTextSize) > maxTextSize {
		return "", tooLong()
	}
	b, err := json.Marshal(plain)
	if err != nil {
		return "", err
	}
	return string(b), nil
}

// variable is the value of a variable.
func (ev *evaluator) variable(v *jmespath.Variable) (Value, error) {
	e, outside := v.Expr, ev.around.Written
	if e == nil {
		resolved, by, err := ev.body(v)
		if err != nil {
			return Value{}, err
		}
		e, ev.around.Written = resolved, max(outside, by)
	}
	value, err := ev.expression(e)
	ev.around.Written = outside
	if err != nil {
		return Value{}, &variableError{v.Raw, err}
	}
	return value, nil
}

// body fills in a variable's inner variables where what they give is part of the
// expression, and reads the result.
func (ev *evaluator) body(v *jmespath.Variable) (e *jmespath.Expr, by Origin, err error) {
	f, err := ev.fill(v.Body)
	if err != nil {
		return nil, by, err
	}
	e, bad, err := f.Expression(diag.Pos{})
	switch {
	case bad != nil:
		return nil, by, &variableError{v.Raw, fmt.Errorf("incorrect query %s: %s", f.Text, bad.Message)}
	case err != nil:
		return nil, by, &variableError{v.Raw, err}
	}
	return e, f.From().Origin, nil
}

func tooLong() error {
	return fmt.Errorf("a text is longer than %d bytes", maxTextSize)
}
