package apiserver

import (
	"context"
	"slices"
	"strings"
	"sync"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/admission"
	plugincel "k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/admission/plugin/policy/validating"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/matchconditions"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/cel/environment"

	"github.com/kvap/kvap/vap"
)

// compile is the API server's compilePolicy, which is not exported. There are two
// differences: the failure policy is always Fail, so that an error shows as one (a
// Verdict applies the policy's own), and what is wrong with an expression is told when
// a request comes to it, for lists are compiled then.
//
// The matcher is that of the match conditions without the guard, where there is one:
// it tells what stops at the guard from what the policy does not match.
//
// plain is a compiler for expressions without variables.
func compile(p *admissionregistrationv1.ValidatingAdmissionPolicy, plain *compiler) (validating.Validator, matchconditions.Matcher) {
	fail := admissionregistrationv1.Fail
	all := plugincel.OptionalVariableDeclarations{HasParams: p.Spec.ParamKind != nil, HasAuthorizer: true}
	message := plugincel.OptionalVariableDeclarations{HasParams: p.Spec.ParamKind != nil}
	c := composition{plain: plain, composed: sync.OnceValues(func() (*plugincel.CompositedCompiler, error) { return compose(p, all) })}
	matching := func(conditions []plugincel.ExpressionAccessor) matchconditions.Matcher {
		if len(conditions) == 0 {
			return nil
		}
		return matchconditions.NewMatcher(c.list(conditions, all), &fail, "policy", "validate", p.Name)
	}
	var unguarded matchconditions.Matcher
	conditions := conditionAccessors(p)
	if i := guardOf(p); i >= 0 {
		unguarded = matching(slices.Delete(slices.Clone(conditions), i, i+1))
		if unguarded == nil {
			unguarded = anyRequest{}
		}
	}
	return validating.NewValidator(
		c.list(validationAccessors(p), all),
		matching(conditions),
		c.list(auditAccessors(p), all),
		c.list(messageAccessors(p), message),
		&fail,
		nil,
	), unguarded
}

// A composition compiles the lists of a policy.
type composition struct {
	plain    *compiler
	composed func() (*plugincel.CompositedCompiler, error) // with the policy's variables
}

// compose is NewCompositedCompiler with a compiler of our own, and the policy's
// variables in it.
func compose(p *admissionregistrationv1.ValidatingAdmissionPolicy, o plugincel.OptionalVariableDeclarations) (*plugincel.CompositedCompiler, error) {
	composed, err := plugincel.NewCompositedCompilerForTypeChecking(baseEnvironment())
	if err != nil {
		return nil, err
	}
	own := newCompiler(noVariables())
	composed.Compiler, composed.ConditionCompiler = own, own
	for _, v := range variableAccessors(p) {
		result := composed.CompileAndStoreVariable(v, o, environment.StoredExpressions)
		declare(own.variables, v.GetName(), result.OutputType)
	}
	return composed, nil
}

// list compiles expressions when a request first comes to them: most stop at the match
// conditions.
func (c composition) list(expressions []plugincel.ExpressionAccessor, o plugincel.OptionalVariableDeclarations) plugincel.ConditionEvaluator {
	return later(sync.OnceValues(func() (plugincel.ConditionEvaluator, error) {
		if !slices.ContainsFunc(expressions, readsVariables) {
			return c.plain.CompileCondition(expressions, o, environment.StoredExpressions), nil
		}
		composed, err := c.composed()
		if err != nil {
			return nil, err
		}
		return composed.CompileCondition(expressions, o, environment.StoredExpressions), nil
	}))
}

// readsVariables tells that an expression may speak of variables.
func readsVariables(e plugincel.ExpressionAccessor) bool {
	return e != nil && strings.Contains(e.GetExpression(), plugincel.VariableVarName)
}

// later is a list that is compiled when it is first evaluated.
type later func() (plugincel.ConditionEvaluator, error)

// ForInput evaluates the list.
func (l later) ForInput(ctx context.Context, attr *admission.VersionedAttributes, request *admissionv1.AdmissionRequest, vars plugincel.OptionalVariableBindings, namespace *corev1.Namespace, budget int64) ([]plugincel.EvaluationResult, int64, error) {
	compiled, err := l()
	if err != nil {
		return nil, -1, err
	}
	return compiled.ForInput(ctx, attr, request, vars, namespace, budget)
}

// CompilationErrors is what is wrong with the list.
func (l later) CompilationErrors() []error {
	compiled, err := l()
	if err != nil {
		return []error{err}
	}
	return compiled.CompilationErrors()
}

// guardOf is the place of the guard among the match conditions; -1 where there is none.
func guardOf(p *admissionregistrationv1.ValidatingAdmissionPolicy) int {
	t, ok, err := vap.TranslationOf(p.Annotations)
	if !ok || err != nil || t.Guard == "" {
		return -1
	}
	return slices.IndexFunc(p.Spec.MatchConditions, func(c admissionregistrationv1.MatchCondition) bool { return c.Name == t.Guard })
}

// anyRequest matches every request.
type anyRequest struct{}

// Match is true.
func (anyRequest) Match(context.Context, *admission.VersionedAttributes, runtime.Object, authorizer.UnconditionalAuthorizer) matchconditions.MatchResult {
	return matchconditions.MatchResult{Matches: true}
}

func variableAccessors(p *admissionregistrationv1.ValidatingAdmissionPolicy) []plugincel.NamedExpressionAccessor {
	out := make([]plugincel.NamedExpressionAccessor, len(p.Spec.Variables))
	for i, v := range p.Spec.Variables {
		out[i] = &validating.Variable{Name: v.Name, Expression: v.Expression}
	}
	return out
}

func conditionAccessors(p *admissionregistrationv1.ValidatingAdmissionPolicy) []plugincel.ExpressionAccessor {
	out := make([]plugincel.ExpressionAccessor, len(p.Spec.MatchConditions))
	for i := range p.Spec.MatchConditions {
		out[i] = (*matchconditions.MatchCondition)(&p.Spec.MatchConditions[i])
	}
	return out
}

func validationAccessors(p *admissionregistrationv1.ValidatingAdmissionPolicy) []plugincel.ExpressionAccessor {
	out := make([]plugincel.ExpressionAccessor, len(p.Spec.Validations))
	for i, v := range p.Spec.Validations {
		out[i] = &validating.ValidationCondition{Expression: v.Expression, Message: v.Message, Reason: v.Reason}
	}
	return out
}

func auditAccessors(p *admissionregistrationv1.ValidatingAdmissionPolicy) []plugincel.ExpressionAccessor {
	out := make([]plugincel.ExpressionAccessor, len(p.Spec.AuditAnnotations))
	for i, a := range p.Spec.AuditAnnotations {
		out[i] = &validating.AuditAnnotationCondition{Key: a.Key, ValueExpression: a.ValueExpression}
	}
	return out
}

// messageAccessors leaves nil, which the evaluator passes over, for a validation
// without a message expression.
func messageAccessors(p *admissionregistrationv1.ValidatingAdmissionPolicy) []plugincel.ExpressionAccessor {
	out := make([]plugincel.ExpressionAccessor, len(p.Spec.Validations))
	for i, v := range p.Spec.Validations {
		if v.MessageExpression != "" {
			out[i] = &validating.MessageExpressionCondition{MessageExpression: v.MessageExpression}
		}
	}
	return out
}
