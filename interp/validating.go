package interp

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apiserver/pkg/admission"
	plugincel "k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/admission/plugin/policy/validating"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/cel/environment"

	"github.com/kvap/kvap/policy"
)

// A validatingForm is a ValidatingPolicy as it is written, or as it is for the
// controllers of pods. It is compiled when it is first needed.
type validatingForm struct {
	name        string // as it is reported
	policy      *policy.Policy
	constraints *policy.MatchConstraints
	// rewrite makes an expression about pods one about what is matched here.
	rewrite func(string) string

	once       sync.Once
	conditions plugincel.ConditionEvaluator
	checks     plugincel.ConditionEvaluator
	messages   []plugincel.ConditionEvaluator // nil where a validation has none
	err        error
}

// judgeValidating judges by the forms of a ValidatingPolicy.
func (in *Interpreter) judgeValidating(a *review, p *compiledPolicy) []RuleResult {
	out := make([]RuleResult, len(p.forms))
	open, _ := p.gate(a)
	for i, f := range p.forms {
		out[i] = RuleResult{Policy: p.Name, Rule: f.name, Status: None, Kyverno: None}
		if p.Namespaced() {
			out[i].Namespace = p.Namespace
		}
		if !open || p.Validating.Mode == "JSON" {
			continue
		}
		verdict := f.judge(in, a)
		out[i].Status, out[i].Kyverno, out[i].Message, out[i].Code = verdict.status, verdict.kyverno, verdict.message, verdict.code
	}
	return out
}

// judge says what a form makes of a request. Whatever goes wrong stays in it.
func (f *validatingForm) judge(in *Interpreter, a *review) (out verdict) {
	defer func() {
		if p := recover(); p != nil {
			out = say(Error, "%v: %v", errPanic, p)
		}
	}()
	if err := a.ctx.Err(); err != nil {
		return say(Error, "the request was given up: %v", err)
	}
	attributes := a.fullAttributes()
	matches, err := constraintsMatch(f.constraints, a, attributes)
	observe(a.ctx, Observation{Rule: f.name, Holds: matches, Err: err})
	switch {
	case err != nil:
		return say(Error, "%v", err)
	case !matches:
		return none()
	}
	f.once.Do(func() { f.compile(in) })
	if f.err != nil {
		return unsupported(fmt.Sprintf("an expression cannot be read: %v", f.err))
	}
	return f.evaluate(a, attributes)
}

// compile compiles the expressions with Kyverno's libraries beside those of the
// API server.
func (f *validatingForm) compile(in *Interpreter) {
	var set *environment.EnvSet
	if set, f.err = in.environment(f.policy.Namespace); f.err != nil {
		return
	}
	compiler, err := plugincel.NewCompositedCompiler(set)
	if err != nil {
		f.err = err
		return
	}
	v, declared := f.policy.Validating, plugincel.OptionalVariableDeclarations{HasAuthorizer: true}
	for _, one := range v.Variables {
		variable := &validating.Variable{Name: one.Name, Expression: f.rewrite(one.Expression)}
		if result := compiler.CompileAndStoreVariable(variable, declared, environment.StoredExpressions); result.Error != nil {
			f.err = errors.Join(f.err, fmt.Errorf("variable %s: %s", one.Name, result.Error.Detail))
		}
	}
	condition := func(list ...plugincel.ExpressionAccessor) plugincel.ConditionEvaluator {
		evaluator := compiler.CompileCondition(list, declared, environment.StoredExpressions)
		f.err = errors.Join(append([]error{f.err}, evaluator.CompilationErrors()...)...)
		return evaluator
	}
	var conditions, checks []plugincel.ExpressionAccessor
	for _, c := range v.MatchConditions {
		conditions = append(conditions, &validating.ValidationCondition{Expression: f.rewrite(c.Expression)})
	}
	for _, e := range v.Validations {
		checks = append(checks, &validating.ValidationCondition{Expression: f.rewrite(e.Expression)})
	}
	f.conditions, f.checks = condition(conditions...), condition(checks...)
	f.messages = make([]plugincel.ConditionEvaluator, len(v.Validations))
	for i, e := range v.Validations {
		if e.MessageExpression != "" {
			f.messages[i] = condition(&validating.MessageExpressionCondition{MessageExpression: f.rewrite(e.MessageExpression)})
		}
	}
}

// evaluate goes through the match conditions and the validations. The first that is
// not true decides.
func (f *validatingForm) evaluate(a *review, attributes *admission.VersionedAttributes) verdict {
	namespace, err := a.celNamespace()
	if err != nil {
		return say(Error, "%v", err)
	}
	request := &admissionv1.AdmissionRequest{}
	if err := decode(a.request.Admission, request); err != nil {
		return say(Error, "%v", err)
	}
	ask := evaluation{a, attributes, request, namespace}
	applies, err := ask.conditions(f.conditions)
	switch {
	case err != nil:
		return say(Error, "failed to evaluate the match conditions: %v", err)
	case !applies:
		return say(Skip, "match conditions not met")
	}
	held, err := ask.all(f.checks)
	if err != nil {
		return say(Error, "%v", err)
	}
	bad, ok := firstBad(held)
	switch {
	case !ok:
		return say(Pass, "success")
	case held[bad].Error != nil:
		return say(Error, "%v", held[bad].Error)
	}
	return say(Fail, "%s", f.message(bad, ask))
}

// An evaluation is what expressions are evaluated with.
type evaluation struct {
	*review
	attributes *admission.VersionedAttributes
	admission  *admissionv1.AdmissionRequest
	space      *corev1.Namespace
}

func (e evaluation) all(list plugincel.ConditionEvaluator) ([]plugincel.EvaluationResult, error) {
	bound := plugincel.OptionalVariableBindings{Authorizer: e.world.Authorizer()}
	out, _, err := list.ForInput(e.ctx, e.attributes, e.admission, bound, plugincel.CreateNamespaceObject(e.space), celconfig.RuntimeCELCostBudget)
	return out, err
}

// conditions tells whether all match conditions are true. An error does not count
// where another one is false.
func (e evaluation) conditions(list plugincel.ConditionEvaluator) (bool, error) {
	met, err := e.all(list)
	for _, r := range met {
		switch {
		case r.Error != nil:
			err = errors.Join(err, r.Error)
		case !isTrue(r):
			return false, nil
		}
	}
	return err == nil, err
}

// firstBad is the first result that is not true: a false one, or an error.
func firstBad(results []plugincel.EvaluationResult) (int, bool) {
	i := slices.IndexFunc(results, func(r plugincel.EvaluationResult) bool { return r.Error != nil || !isTrue(r) })
	return i, i >= 0
}

func isTrue(r plugincel.EvaluationResult) bool {
	return r.EvalResult != nil && r.EvalResult.Value() == true
}

// message is what the validation at an index says of a violation.
func (f *validatingForm) message(index int, ask evaluation) string {
	check := f.policy.Validating.Validations[index]
	if m := f.messages[index]; m != nil {
		out, err := ask.all(m)
		switch {
		case err != nil:
			return fmt.Sprintf("failed to evaluate message expression: %v", err)
		case out[0].Error != nil:
			return fmt.Sprintf("failed to evaluate message expression: %v", out[0].Error)
		}
		if text, ok := out[0].EvalResult.Value().(string); ok {
			return text
		}
	}
	if check.Message != "" {
		return check.Message
	}
	return "failed expression: " + strings.TrimSpace(check.Expression)
}
