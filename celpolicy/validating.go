package celpolicy

import (
	"slices"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"

	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/vap"
)

// validating is a ValidatingPolicy for each binding of a native policy.
func (c *converter) validating(p *policy.Policy, o vap.Objects) (out []Object, why *diag.Diagnostic) {
	for i, b := range o.Draft.Bindings {
		e := newExpressions(p, o.Draft, b)
		one := c.object(p, "ValidatingPolicy", o.Bindings[i].Name, o.Draft)
		one.Spec = e.frame(o.Policy.Spec)
		for _, a := range b.Actions {
			one.Spec.ValidationActions = append(one.Spec.ValidationActions, admissionregistrationv1.ValidationAction(a))
		}
		for _, v := range o.Policy.Spec.Validations {
			checked := Validation{Expression: e.boolean(v.Expression, true), Message: v.Message}
			if v.MessageExpression != "" {
				checked.MessageExpression = e.message(v.MessageExpression, v.Expression)
			}
			one.Spec.Validations = append(one.Spec.Validations, checked)
		}
		for _, a := range o.Policy.Spec.AuditAnnotations {
			one.Spec.AuditAnnotations = append(one.Spec.AuditAnnotations, admissionregistrationv1.AuditAnnotation{Key: a.Key, ValueExpression: e.string(a.ValueExpression)})
		}
		if e.policy.FailurePolicy == policy.Ignore && slices.Contains(b.Actions, "Deny") {
			e.addViolated(&one.Spec)
		}
		e.addParams(&one.Spec)
		e.dropUnread(&one.Spec)
		if e.why != nil {
			return nil, e.why
		}
		out = append(out, one)
	}
	return out, nil
}

// frame is what policies that validate and those that mutate have in common.
func (e *expressions) frame(from admissionregistrationv1.ValidatingAdmissionPolicySpec) Spec {
	out := Spec{MatchConstraints: e.constraints(), FailurePolicy: string(*from.FailurePolicy)}
	e.named = vap.FreshName(paramsName, "", func(name string) bool {
		return slices.ContainsFunc(from.Variables, func(v admissionregistrationv1.Variable) bool { return v.Name == name })
	})
	for _, v := range from.Variables {
		text := e.text(v.Expression, true)
		e.untyped[v.Name] = e.isUntyped(text)
		out.Variables = append(out.Variables, admissionregistrationv1.Variable{Name: v.Name, Expression: text})
	}
	for _, m := range from.MatchConditions {
		out.MatchConditions = append(out.MatchConditions, admissionregistrationv1.MatchCondition{Name: m.Name, Expression: e.boolean(m.Expression, false)})
	}
	if seconds := timeout(e.policy); seconds > 0 {
		out.Webhook = &WebhookConfiguration{seconds}
	}
	if !e.policy.Background {
		out.Evaluation = &Evaluation{Background: &Switch{false}}
	}
	if aboutPods(out.MatchConstraints) {
		out.Autogen = &Autogen{PodControllers{[]string{}}}
	}
	return out
}

// timeout is how long the API server waits for Kyverno; 0 where the policy does not say it.
func timeout(p *policy.Policy) int64 {
	spec := p.Source.Get("spec")
	if spec == nil {
		return 0
	}
	for _, at := range []*policy.Node{spec.Get("webhookConfiguration").Get("timeoutSeconds"), spec.Get("webhookTimeoutSeconds")} {
		if at != nil {
			if seconds, ok := at.Value().(int64); ok {
				return seconds
			}
		}
	}
	return 0
}

// aboutPods tells that Kyverno would take a policy for one about the controllers of Pods too,
// unless it says otherwise.
func aboutPods(m *admissionregistrationv1.MatchResources) bool {
	if len(m.ResourceRules) != 1 || m.ObjectSelector != nil || len(m.ExcludeResourceRules) > 0 {
		return false
	}
	r := m.ResourceRules[0]
	return len(r.ResourceNames) == 0 && slices.Equal(r.APIGroups, []string{""}) && slices.Equal(r.APIVersions, []string{"v1"}) && slices.Equal(r.Resources, []string{"pods"})
}

// constraints are those of the native policy and of its binding. A policy of a namespace is
// about no other, which it need not say.
func (e *expressions) constraints() *admissionregistrationv1.MatchResources {
	c, b := e.draft.Constraints, e.binding
	c.NamespaceSelector = c.NamespaceSelector.And(b.NamespaceSelector)
	c.ObjectSelector = c.ObjectSelector.And(b.ObjectSelector)
	if len(b.Rules) > 0 {
		e.refuse("resources that differ by action")
	}
	if e.policy.Namespaced() {
		if only, ok := c.NamespaceSelector.Namespaces(); ok && slices.Equal(only, []string{e.policy.Namespace}) {
			c.NamespaceSelector = vap.Selector{}
		}
	}
	out := c.MatchResources()
	if c.NamespaceSelector.IsEmpty() {
		out.NamespaceSelector = nil
	}
	if c.ObjectSelector.IsEmpty() {
		out.ObjectSelector = nil
	}
	out.MatchPolicy = nil // Equivalent, as of all rules of kyverno.io
	for _, rules := range [][]admissionregistrationv1.NamedRuleWithOperations{out.ResourceRules, out.ExcludeResourceRules} {
		for i := range rules {
			if *rules[i].Scope == admissionregistrationv1.AllScopes {
				rules[i].Scope = nil
			}
		}
	}
	return out
}

// addViolated has the validations looked at for violations alone. Under failurePolicy Ignore a rule
// that errs denies nothing, and a match condition that errs neither; but Kyverno denies where a
// validation errs.
func (e *expressions) addViolated(s *Spec) {
	var all []cel.Bool
	for _, v := range s.Validations {
		all = append(all, e.parsed(v.Expression).AsBool())
	}
	violated := cel.Not(cel.And(all...)).Value
	for _, v := range slices.Backward(s.Variables) {
		violated = violated.SubstituteField("variables", v.Name, e.parsed(v.Expression))
	}
	violated = violated.SubstituteField("variables", e.named, e.params)
	text := violated.Text(width)
	if len(text) > vap.MaxExpressionLength {
		e.refuse("a failurePolicy Ignore of expressions that are as long")
	}
	name := s.addCondition("violated", text)
	if len(s.Validations) == 1 {
		s.Validations[0].Expression = "// what meets the match condition '" + name + "' is a violation\nfalse"
	}
}

// addCondition adds a match condition, of a name that no other has.
func (s *Spec) addCondition(name, expression string) string {
	name = vap.FreshName(name, "", func(name string) bool {
		return slices.ContainsFunc(s.MatchConditions, func(m admissionregistrationv1.MatchCondition) bool { return m.Name == name })
	})
	s.MatchConditions = append(s.MatchConditions, admissionregistrationv1.MatchCondition{Name: name, Expression: expression})
	return name
}

// dropUnread leaves out the variables that nothing reads, or only one that is left out.
func (e *expressions) dropUnread(s *Spec) {
	reads := map[string]bool{}
	read := func(text string) {
		if text != "" {
			for _, name := range e.parsed(text).Uses("variables") {
				reads[name] = true
			}
		}
	}
	for _, v := range s.Validations {
		read(v.Expression)
		read(v.MessageExpression)
	}
	for _, a := range s.AuditAnnotations {
		read(a.ValueExpression)
	}
	for _, m := range s.Conditions {
		read(m.Expression)
	}
	for _, m := range s.TargetConditions {
		read(m.Expression)
	}
	if s.TargetConstraints != nil {
		read(s.TargetConstraints.Expression)
	}
	for _, m := range s.Mutations {
		if m.JSONPatch != nil {
			read(m.JSONPatch.Expression)
		} else {
			read(m.ApplyConfiguration.Expression)
		}
	}
	for _, g := range s.Generate {
		read(g.Expression)
	}
	var kept []admissionregistrationv1.Variable
	for _, v := range slices.Backward(s.Variables) { // one reads only those before it
		if reads[v.Name] {
			read(v.Expression)
			kept = append(kept, v)
		}
	}
	slices.Reverse(kept)
	s.Variables = kept
}

// addParams declares what was the params of the native policy, and says what becomes of a request
// while they are not there: it is denied, or under failurePolicy Ignore not looked at.
func (e *expressions) addParams(s *Spec) {
	if e.binding.Param == nil {
		return
	}
	s.Variables = append([]admissionregistrationv1.Variable{{Name: e.named, Expression: e.params.Text(width)}}, s.Variables...)
	if e.policy.FailurePolicy == policy.Ignore {
		s.addCondition(paramsName, e.params.Ne(cel.Null()).Text(width))
		return
	}
	there := cel.Ident("variables").Field(e.named).Ne(cel.Null())
	missing := "the ConfigMap " + e.binding.Param.Name + " does not exist"
	s.Validations = append([]Validation{{Expression: there.Text(width), Message: missing}}, s.Validations...)
}
