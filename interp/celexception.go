package interp

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/google/cel-go/cel"

	"github.com/kvap/kvap/policy"
)

// A celException is an exception from a policy in CEL, compiled for it.
type celException struct {
	*policy.Exception
	conditions []cel.Program
}

// exceptions are those from a policy. They are compiled as its own expressions are, for
// the controllers of pods too, as they are written.
func (c *celPolicy) exceptions(list []*policy.Exception, p *policy.Policy) (out []celException, err error) {
	for _, e := range list {
		if !e.CEL.IsFrom(p) {
			continue
		}
		one := celException{Exception: e}
		for _, condition := range e.CEL.MatchConditions {
			program, bad := c.compile(condition.Expression, cel.BoolType)
			if bad != nil {
				err = errors.Join(err, fmt.Errorf("exception %s/%s: %w", e.Namespace, e.Name, bad))
			}
			one.conditions = append(one.conditions, program)
		}
		out = append(out, one)
	}
	return out, err
}

// celExcepted is what exceptions allow, for the expressions of the policy to ask for; or
// the verdict, where one is from the whole policy. Of one that errs nobody knows whether
// it applies, unless another one does; with lenient set it does not.
func (a *preparedRequest) celExcepted(list []celException, scope celScope, lenient bool) (allowed map[string]any, out *verdict, err error) {
	var whole []celException
	images, values := []string{}, []string{}
	for _, e := range list {
		applies, bad := a.applies(e, scope)
		switch {
		case bad != nil && !lenient:
			err = errors.Join(err, fmt.Errorf("%s/%s: %w", e.Namespace, e.Name, bad))
		case bad != nil || !applies:
		case e.CEL.Whole():
			whole = append(whole, e)
		default:
			images, values = append(images, e.CEL.Images...), append(values, e.CEL.AllowedValues...)
		}
	}
	if len(whole) > 0 {
		said := excuse(whole)
		return nil, &said, nil
	}
	return map[string]any{"allowedImages": images, "allowedValues": values}, nil, err
}

// applies tells whether an exception has not ended and its conditions hold.
func (a *preparedRequest) applies(e celException, scope celScope) (bool, error) {
	if end := e.CEL.ExpiresAt; !end.IsZero() && !a.world.Now().Before(end) {
		return false, nil
	}
	return scope.all(a.ctx, e.conditions)
}

// excuse is the verdict of exceptions from a whole policy. That of the highest priority
// says whether the result is a pass, else the first.
func excuse(list []celException) verdict {
	names, decides, highest := make([]string, len(list)), list[0], 0
	for i, e := range list {
		names[i] = e.Namespace + "/" + e.Name
		if priority, err := strconv.Atoi(e.CEL.Labels["polex.kyverno.io/priority"]); err == nil && priority > highest {
			decides, highest = e, priority
		}
	}
	out := say(Skip, "rule is skipped due to policy exception: %s", strings.Join(names, ", "))
	if decides.CEL.ReportResult == "pass" {
		out = say(Pass, "rule is passed due to policy exception: %s", strings.Join(names, ", "))
	}
	out.exceptions = names
	return out
}
