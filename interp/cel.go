package interp

import (
	"errors"
	"fmt"
	"slices"
	"sync"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	plugincel "k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/admission/plugin/policy/validating"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/matchconditions"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	authuser "k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/cel/environment"

	"github.com/kvap/kvap/interp/internal/cellib"
	"github.com/kvap/kvap/policy"
)

// A celRule is validate.cel, compiled with the API server's own code when it is
// first needed.
type celRule struct {
	body          *policy.CELRule
	message       string // of expressions that have none
	preconditions []policy.CEL
	tooLarge      func() error

	once      sync.Once
	matcher   matchconditions.Matcher // nil without preconditions
	validator validating.Validator
	err       error
	broken    error // of expressions that do not compile
}

func readCEL(v *policy.Validate, preconditions []policy.CEL, tooLarge func() error) *celRule {
	return &celRule{body: v.CEL, message: v.Message.Value, preconditions: preconditions, tooLarge: tooLarge}
}

// compile compiles the rule. Expressions that do not compile err when they are
// evaluated.
func (c *celRule) compile() {
	if c.err = c.tooLarge(); c.err != nil {
		return
	}
	compiler, err := plainCEL()
	if len(c.body.Variables) > 0 { // which become part of it
		compiler, err = newCELCompiler()
	}
	if err != nil {
		c.err = err
		return
	}
	params := c.body.ParamKind != nil && c.body.ParamRef != nil
	all := plugincel.OptionalVariableDeclarations{HasParams: params, HasAuthorizer: true}
	plain := plugincel.OptionalVariableDeclarations{HasParams: params}
	variables := make([]plugincel.NamedExpressionAccessor, len(c.body.Variables))
	for i, v := range c.body.Variables {
		variables[i] = &validating.Variable{Name: v.Name, Expression: v.Expression}
	}
	for _, v := range variables {
		if result := compiler.CompileAndStoreVariable(v, all, environment.StoredExpressions); result.Error != nil {
			c.broken = errors.Join(c.broken, fmt.Errorf("variable %s: %s", v.GetName(), result.Error.Detail))
		}
	}
	condition := func(list []plugincel.ExpressionAccessor, declared plugincel.OptionalVariableDeclarations) plugincel.ConditionEvaluator {
		evaluator := compiler.CompileCondition(list, declared, environment.StoredExpressions)
		c.broken = errors.Join(append([]error{c.broken}, evaluator.CompilationErrors()...)...)
		return evaluator
	}
	if len(c.preconditions) > 0 {
		c.matcher = matcherOf(condition(accessorsOf(c.preconditions), all))
	}
	checks, messages := c.expressions()
	c.validator = validating.NewValidator(condition(checks, all), nil, condition(nil, all), condition(messages, plain), nil, nil)
}

// expressions are the validations and, at the same indexes, their message
// expressions.
func (c *celRule) expressions() (checks, messages []plugincel.ExpressionAccessor) {
	for _, e := range c.body.Expressions {
		check := &validating.ValidationCondition{Expression: e.Expression, Message: e.Message}
		if check.Message == "" {
			check.Message = c.message
		}
		if e.Reason != "" {
			reason := metav1.StatusReason(e.Reason)
			check.Reason = &reason
		}
		checks = append(checks, check)
		if e.MessageExpression == "" {
			messages = append(messages, nil)
			continue
		}
		messages = append(messages, &validating.MessageExpressionCondition{MessageExpression: e.MessageExpression})
	}
	return checks, messages
}

// Making an environment takes longer than compiling a rule, so what declares no variables
// shares one; and it depends on nothing.
var (
	celEnvironment = sync.OnceValues(func() (*environment.EnvSet, error) { return withKyverno(cellib.Optionals()) })
	plainCEL       = sync.OnceValues(newCELCompiler)
)

func newCELCompiler() (*plugincel.CompositedCompiler, error) {
	set, err := celEnvironment()
	if err != nil {
		return nil, err
	}
	return plugincel.NewCompositedCompiler(set)
}

func accessorsOf(conditions []policy.CEL) []plugincel.ExpressionAccessor {
	accessors := make([]plugincel.ExpressionAccessor, len(conditions))
	for i, c := range conditions {
		accessors[i] = &matchconditions.MatchCondition{Name: c.Name, Expression: c.Expression}
	}
	return accessors
}

func matcherOf(conditions plugincel.ConditionEvaluator) matchconditions.Matcher {
	fail := admissionregistrationv1.Fail
	return matchconditions.NewMatcher(conditions, &fail, "policy", "validate", "")
}

// judge evaluates the rule. What errs is a violation, not an error; but what the request does
// not wait for is one.
func (c *celRule) judge(a *preparedRequest, r *rule) verdict {
	c.once.Do(c.compile)
	if c.err != nil {
		return say(Error, "failed to compile the rule: %v", c.err)
	}
	namespace, err := a.celNamespace()
	if err != nil {
		return say(Error, "%v", err)
	}
	params, err := c.params(a)
	if err != nil {
		return say(Error, "%v", err)
	}
	attributes := a.celAttributes()
	for _, p := range params {
		out := c.judgeWith(a, r, attributes, p, namespace)
		if out.status != Pass {
			return out
		}
	}
	return say(Pass, "Validation rule '%s' passed.", r.Name)
}

func (c *celRule) judgeWith(a *preparedRequest, r *rule, attributes *admission.VersionedAttributes, params runtime.Object, namespace *corev1.Namespace) verdict {
	auth := a.world.Authorizer()
	if c.matcher != nil {
		met := c.matcher.Match(a.ctx, attributes, params, auth)
		interrupted := givenUp(a.ctx)
		switch {
		case met.Error != nil && interrupted != nil:
			return say(Error, "%v", interrupted)
		case met.Error != nil:
			return say(Fail, "%v", met.Error)
		case !met.Matches:
			return say(Skip, "cel preconditions not met")
		}
	}
	result := c.validator.Validate(a.ctx, attributes.GetResource(), attributes, params, namespace, celconfig.RuntimeCELCostBudget, auth)
	for _, d := range result.Decisions {
		if d.Action == validating.ActionDeny {
			if err := givenUp(a.ctx); err != nil {
				return say(Error, "%v", err)
			}
			return say(Fail, "%s", d.Message)
		}
	}
	return say(Pass, "Validation rule '%s' passed.", r.Name)
}

// params are the objects that the rule is judged with, each in turn: one null for
// a rule without any. None at all is right only if the rule allows that.
func (c *celRule) params(a *preparedRequest) ([]runtime.Object, error) {
	kind, ref := c.body.ParamKind, c.body.ParamRef
	if kind == nil || ref == nil {
		return []runtime.Object{nil}, nil
	}
	namespace := ref.Namespace
	if namespace == "" {
		namespace = a.namespace
	}
	selector := &metav1.LabelSelector{}
	if ref.Selector != nil {
		selector = plainSelector(ref.Selector)
	}
	found, err := a.world.Params(a.ctx, kind.APIVersion, kind.Kind, namespace, ref.Name, selector)
	if err != nil {
		return nil, fmt.Errorf("failed to find the params of the rule: %w", err)
	}
	if len(found) == 0 && ref.ParameterNotFoundAction != "Allow" {
		return nil, fmt.Errorf("no params found for the rule: there is no %s %q", kind.Kind, ref.Name)
	}
	out := make([]runtime.Object, len(found))
	for i, object := range found {
		out[i] = &unstructured.Unstructured{Object: object}
	}
	return out, nil
}

func plainSelector(s *policy.Selector) *metav1.LabelSelector {
	out := &metav1.LabelSelector{MatchLabels: map[string]string{}}
	for _, p := range s.MatchLabels {
		out.MatchLabels[p.Key] = p.Value
	}
	for _, e := range s.Expressions {
		out.MatchExpressions = append(out.MatchExpressions, metav1.LabelSelectorRequirement{
			Key: e.Key, Operator: metav1.LabelSelectorOperator(e.Operator), Values: e.Values,
		})
	}
	return out
}

// celNamespace is namespaceObject: nil outside of namespaces, and for a Namespace
// itself.
func (a *preparedRequest) celNamespace() (*corev1.Namespace, error) {
	if a.namespace == "" || a.kind.kind == "Namespace" && a.kind.group == "" {
		return nil, nil
	}
	object, err := a.world.Namespace(a.ctx, a.namespace)
	if err != nil {
		return nil, fmt.Errorf("failed to get the namespace: %w", err)
	}
	namespace, err := namespaceOf(object)
	if err == nil && a.request.NamespaceLabels != nil {
		namespace.Labels = a.request.NamespaceLabels
	}
	return namespace, err
}

func namespaceOf(object map[string]any) (*corev1.Namespace, error) {
	namespace := &corev1.Namespace{}
	return namespace, decode(object, namespace)
}

// celAttributes is the request as CEL sees it: never of a subresource, never a
// dry run, and without options.
func (a *preparedRequest) celAttributes() *admission.VersionedAttributes {
	object, old := celObject(a.object), celObject(a.old)
	if a.deletes() {
		object = nil
	}
	named := a.object
	if object == nil {
		named = a.old
	}
	kind := schema.GroupVersionKind{Group: a.kind.group, Version: a.kind.version, Kind: a.kind.kind}
	resource := schema.GroupVersionResource{
		Group:    digText(a.request.Admission, "resource", "group"),
		Version:  digText(a.request.Admission, "resource", "version"),
		Resource: digText(a.request.Admission, "resource", "resource"),
	}
	record := admission.NewAttributesRecord(object, old, kind, metaText(named, "namespace"), metaText(named, "name"), resource,
		"", admission.Operation(a.operation), nil, false, a.celUser())
	return &admission.VersionedAttributes{Attributes: record, VersionedKind: kind, VersionedObject: admission.NewLazyObject(object), VersionedOldObject: admission.NewLazyObject(old)}
}

// celObject is an object, or a nil that compares equal to nil.
func celObject(object map[string]any) runtime.Object {
	if object == nil {
		return nil
	}
	return &unstructured.Unstructured{Object: object}
}

func (a *preparedRequest) celUser() authuser.Info {
	info, _ := a.request.Admission["userInfo"].(map[string]any)
	out := &authuser.DefaultInfo{Name: a.user.name, UID: digText(info, "uid"), Groups: slices.Clone(a.user.groups), Extra: map[string][]string{}}
	for k, v := range digMap(info, "extra") {
		out.Extra[k] = stringsOf(v)
	}
	return out
}

// matchConditions are webhookConfiguration.matchConditions.
type matchConditions struct {
	conditions []policy.CEL
	tooLarge   func() error

	once    sync.Once
	matcher matchconditions.Matcher
	err     error
}

func readMatchConditions(p *policy.Policy, tooLarge func() error) *matchConditions {
	return &matchConditions{conditions: p.MatchConditions, tooLarge: tooLarge}
}

// hold tells whether all conditions are true. One that errs is not; those that are not
// compiled, and those that the request does not wait for, are an error, of each rule.
func (m *matchConditions) hold(a *preparedRequest) (bool, error) {
	if len(m.conditions) == 0 {
		return true, nil
	}
	if err := givenUp(a.ctx); err != nil {
		return false, unevaluated(err)
	}
	m.once.Do(func() {
		if m.err = m.tooLarge(); m.err != nil {
			return
		}
		compiler, err := plainCEL()
		if err != nil {
			m.err = err
			return
		}
		declared := plugincel.OptionalVariableDeclarations{HasAuthorizer: true}
		m.matcher = matcherOf(compiler.CompileCondition(accessorsOf(m.conditions), declared, environment.StoredExpressions))
	})
	if m.err != nil {
		return false, m.err
	}
	met := m.matcher.Match(a.ctx, a.celAttributes(), nil, noAuthorizer())
	if err := givenUp(a.ctx); met.Error != nil && err != nil {
		return false, unevaluated(err)
	}
	if met.Error != nil && a.request.OwnConditions {
		return false, unevaluated(met.Error)
	}
	return met.Error == nil && met.Matches, nil
}

func unevaluated(err error) error {
	return fmt.Errorf("failed to evaluate its match conditions: %w", err)
}

// noAuthorizer is what match conditions of a policy are given: none answers.
func noAuthorizer() authorizer.UnconditionalAuthorizer {
	return nil
}
