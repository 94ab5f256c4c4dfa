package interp

import (
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"

	"github.com/kvap/kvap/interp/internal/cellib"
	"github.com/kvap/kvap/policy"
)

// A validatingForm is a form of a ValidatingPolicy. It is compiled when it is first
// needed.
type validatingForm struct {
	celForm

	once       sync.Once
	cel        *celPolicy
	exceptions []celException
	conditions []cel.Program
	checks     []cel.Program
	messages   []cel.Program // nil where a validation has none
	images     *imageForm    // of an ImageValidatingPolicy
	err        error
}

// judgeValidating judges by the forms of a ValidatingPolicy.
func (in *Interpreter) judgeValidating(a *preparedRequest, p *compiledPolicy) []RuleResult {
	out := make([]RuleResult, len(p.forms))
	open, _ := p.gate(a)
	for i, f := range p.forms {
		out[i] = RuleResult{Policy: p.Name, Rule: f.name, Status: None, Kyverno: None}
		if p.Namespaced() {
			out[i].Namespace = p.Namespace
		}
		if !open || (p.Validating.Mode == "JSON") != a.request.Document {
			continue
		}
		verdict, awaits := f.judge(in, a)
		if verdict.status != None && a.sparesByConstraints(f.constraints) {
			verdict, awaits = verdictOfKyverno(verdict.kyverno), nil
		}
		out[i].Status, out[i].Kyverno, out[i].Message, out[i].Code = verdict.status, verdict.kyverno, verdict.message, verdict.code
		out[i].Exceptions, out[i].awaits = verdict.exceptions, awaits
	}
	return out
}

// judge says what a form makes of a request, and which images some policy must verify. Whatever
// goes wrong stays in it.
func (f *validatingForm) judge(in *Interpreter, a *preparedRequest) (out verdict, awaits []string) {
	defer func() {
		if p := recover(); p != nil {
			out, awaits = say(Error, "%v: %v", errPanic, p), nil
		}
	}()
	if err := givenUp(a.ctx); err != nil {
		return say(Error, "%v", err), nil
	}
	matches, err := f.matches(a)
	observe(a.ctx, Observation{Rule: f.name, Holds: matches, Err: err})
	switch {
	case mayMatch(f.constraints, a, a.fullAttributes()):
		return unknownNamespace(), nil
	case err != nil:
		return say(Error, "%v", err), nil
	case !matches:
		return none(), nil
	}
	f.once.Do(func() { f.compile(in) })
	if f.err != nil {
		return unsupported(fmt.Sprintf("an expression cannot be read: %v", f.err)), nil
	}
	if f.images != nil {
		return f.judgeImages(a)
	}
	return f.evaluate(a), nil
}

// matches tells whether the constraints match. An ImageValidatingPolicy without is about all.
func (f *validatingForm) matches(a *preparedRequest) (bool, error) {
	if a.request.Document || f.constraints == nil && f.policy.ImagePolicy() != nil {
		return true, nil
	}
	return constraintsMatch(f.constraints, a, a.fullAttributes())
}

// compile compiles the expressions with Kyverno's libraries beside those of the
// API server.
func (f *validatingForm) compile(in *Interpreter) {
	if f.err = f.tooLarge(); f.err != nil {
		return
	}
	if f.cel, f.err = in.celPolicy(cellib.PolicyKind{Namespace: f.policy.Namespace, Images: f.policy.ImagePolicy() != nil}); f.err != nil {
		return
	}
	compiled := func(expression string, want *cel.Type) cel.Program {
		program, err := f.cel.compile(f.rewrite(expression), want)
		f.err = errors.Join(f.err, err)
		return program
	}
	var err error
	v := f.policy.Validating
	for _, c := range v.MatchConditions { // which know no variables
		f.conditions = append(f.conditions, compiled(c.Expression, cel.BoolType))
	}
	for _, one := range v.Variables {
		f.err = errors.Join(f.err, f.cel.define(one.Name, f.rewrite(one.Expression)))
	}
	f.exceptions, err = f.cel.exceptions(in.celExceptions, f.policy)
	f.err = errors.Join(f.err, err)
	f.messages = make([]cel.Program, len(v.Validations))
	for i, e := range v.Validations {
		f.checks = append(f.checks, compiled(e.Expression, cel.BoolType))
		if e.MessageExpression != "" {
			f.messages[i] = compiled(e.MessageExpression, cel.StringType)
		}
	}
	if p := f.policy.ImagePolicy(); p != nil {
		f.compileImages(p)
	}
}

// evaluate goes through the match conditions and the validations. The first that is
// not true decides.
func (f *validatingForm) evaluate(a *preparedRequest) verdict {
	scope, err := a.celScope()
	if err != nil {
		return say(Error, "%v", err)
	}
	allowed, excepted, err := a.celExcepted(f.exceptions, scope, f.policy.FailurePolicy == policy.Ignore)
	switch {
	case err != nil:
		return say(Error, "failed to evaluate an exception: %v", err)
	case excepted != nil:
		return *excepted
	}
	scope["exceptions"] = allowed
	applies, err := scope.all(a.ctx, f.conditions)
	switch {
	case err != nil && f.policy.FailurePolicy == policy.Ignore:
		return say(Skip, "skip")
	case err != nil:
		return say(Error, "failed to evaluate the match conditions: %v", err)
	case !applies:
		return say(Skip, "match conditions not met")
	}
	scope = scope.with(a.ctx, f.cel)
	for i, check := range f.checks {
		out, err := scope.eval(a.ctx, check)
		switch {
		case err != nil:
			return say(Error, "expression '%s' resulted in error: %v", f.policy.Validating.Validations[i].Expression, err)
		case out != types.True:
			return say(Fail, "%s", f.message(a, scope, i))
		}
	}
	return say(Pass, "success")
}

// message is what the validation at an index says of a violation.
func (f *validatingForm) message(a *preparedRequest, scope celScope, index int) string {
	check := f.policy.Validating.Validations[index]
	if m := f.messages[index]; m != nil {
		out, err := scope.eval(a.ctx, m)
		if err != nil {
			return fmt.Sprintf("failed to evaluate message expression: %v", err)
		}
		if said, ok := out.Value().(string); ok && said != "" {
			return said
		}
	} else if check.Message != "" {
		return check.Message
	}
	return "failed expression: " + strings.TrimSpace(check.Expression)
}
