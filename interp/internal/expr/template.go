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
func Substitute(ctx context.Context, t *jmespath.Template, s Scope, around Surroundings) (any, error) {
	return newEvaluator(ctx, s, around).substitute(t)
}

func (ev *evaluator) substitute(t *jmespath.Template) (any, error) {
	if v := t.Single(); v != nil {
		return ev.variable(v)
	}
	return ev.text(t)
}

// text fills in the variables of a template as text.
func (ev *evaluator) text(t *jmespath.Template) (string, error) {
	f, err := ev.fill(t)
	return f.Text, err
}

// embedded is a variable as part of a string.
func (ev *evaluator) embedded(v *jmespath.Variable) (string, error) {
	value, err := ev.variable(v)
	if err != nil {
		return "", err
	}
	if s, ok := value.(string); ok {
		return s, nil
	}
	if v.Shallow {
		return "", &variableError{v.Raw, fmt.Errorf("a {{- variable in a text must be a string, not %s", datum.TypeName(value))}
	}
	text, err := ev.json(value)
	if err != nil {
		return "", &variableError{v.Raw, err}
	}
	return text, nil
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
func (ev *evaluator) variable(v *jmespath.Variable) (any, error) {
	e := v.Expr
	if e == nil {
		resolved, err := ev.body(v)
		if err != nil {
			return nil, err
		}
		e = resolved
	}
	value, err := ev.expression(e)
	if err != nil {
		return nil, &variableError{v.Raw, err}
	}
	return value, nil
}

// body fills in a variable's inner variables where what they give is part of the
// expression, and reads the result.
func (ev *evaluator) body(v *jmespath.Variable) (*jmespath.Expr, error) {
	f, err := ev.fill(v.Body)
	if err != nil {
		return nil, err
	}
	e, bad, err := f.Expression(diag.Pos{})
	switch {
	case bad != nil:
		return nil, &variableError{v.Raw, fmt.Errorf("incorrect query %s: %s", f.Text, bad.Message)}
	case err != nil:
		return nil, &variableError{v.Raw, err}
	}
	return e, nil
}

func tooLong() error {
	return fmt.Errorf("a text is longer than %d bytes", maxTextSize)
}
