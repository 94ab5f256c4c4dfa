package vap

import (
	"context"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/admission"
	plugincel "k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/admission/plugin/policy/validating"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/matchconditions"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/cel/environment"
)

// compile is the API server's compilePolicy, which is not exported. The one
// difference is the failure policy, which is always Fail, so that an error shows
// as one; a Verdict applies the policy's own.
//
// The matcher is that of the match conditions without the guard, where there is one:
// it tells what stops at the guard from what the policy does not match.
//
// plain is a compiler for policies without variables: making one takes longer than
// what it compiles.
func compile(p *admissionregistrationv1.ValidatingAdmissionPolicy, plain func() plugincel.ConditionCompiler) (validating.Validator, matchconditions.Matcher) {
	fail := admissionregistrationv1.Fail
	all := plugincel.OptionalVariableDeclarations{HasParams: p.Spec.ParamKind != nil, HasAuthorizer: true}
	message := plugincel.OptionalVariableDeclarations{HasParams: p.Spec.ParamKind != nil}
	var compiler plugincel.ConditionCompiler
	if usesVariables(p) {
		composited, err := plugincel.NewCompositedCompiler(baseEnvironment())
		if err != nil {
			return validating.NewValidator(nil, nil, nil, nil, &fail, err), nil
		}
		composited.CompileAndStoreVariables(variableAccessors(p), all, environment.StoredExpressions)
		compiler = composited
	} else {
		compiler = plain()
	}
	condition := func(accessors []plugincel.ExpressionAccessor, o plugincel.OptionalVariableDeclarations) plugincel.ConditionEvaluator {
		return compiler.CompileCondition(accessors, o, environment.StoredExpressions)
	}
	matching := func(conditions []plugincel.ExpressionAccessor) matchconditions.Matcher {
		if len(conditions) == 0 {
			return nil
		}
		return matchconditions.NewMatcher(condition(conditions, all), &fail, "policy", "validate", p.Name)
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
		condition(validationAccessors(p), all),
		matching(conditions),
		condition(auditAccessors(p), all),
		condition(messageAccessors(p), message),
		&fail,
		nil,
	), unguarded
}

// baseEnvironment is what an API server extends for its policies.
func baseEnvironment() *environment.EnvSet {
	return environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion())
}

// usesVariables tells that a policy has variables, or speaks of some.
func usesVariables(p *admissionregistrationv1.ValidatingAdmissionPolicy) bool {
	if len(p.Spec.Variables) > 0 {
		return true
	}
	for _, accessors := range [][]plugincel.ExpressionAccessor{conditionAccessors(p), validationAccessors(p), auditAccessors(p), messageAccessors(p)} {
		for _, a := range accessors {
			if a != nil && strings.Contains(a.GetExpression(), "variables") {
				return true
			}
		}
	}
	return false
}

// guardOf is the place of the guard among the match conditions; -1 where there is none.
func guardOf(p *admissionregistrationv1.ValidatingAdmissionPolicy) int {
	t, ok, err := TranslationOf(p.Annotations)
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
