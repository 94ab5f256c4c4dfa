package vap

import (
	"slices"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// bindings are the bindings of the policy of that name. A binding is named like
// its policy, with its suffix behind, so that the two are found together.
func (e *emitter) bindings(policy string) []*admissionregistrationv1.ValidatingAdmissionPolicyBinding {
	var out []*admissionregistrationv1.ValidatingAdmissionPolicyBinding
	for _, b := range e.draft.Bindings {
		out = append(out, e.binding(policy, b))
	}
	return out
}

func (e *emitter) binding(policy string, b Binding) *admissionregistrationv1.ValidatingAdmissionPolicyBinding {
	var actions []admissionregistrationv1.ValidationAction
	for _, a := range b.Actions {
		actions = append(actions, admissionregistrationv1.ValidationAction(a))
	}
	name := policy
	if b.Suffix != "" {
		name = e.bindingName(policy, b.Suffix)
	}
	return &admissionregistrationv1.ValidatingAdmissionPolicyBinding{
		TypeMeta:   metav1.TypeMeta{APIVersion: admissionregistrationv1.SchemeGroupVersion.String(), Kind: "ValidatingAdmissionPolicyBinding"},
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: e.labels()},
		Spec: admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName:        policy,
			ParamRef:          b.Param.object(),
			MatchResources:    e.matchResources(b),
			ValidationActions: actions,
		},
	}
}

func (e *emitter) bindingName(policy, suffix string) string {
	if e.opts.Static {
		return e.policyName(policy[:len(policy)-len(staticSuffix)], suffix)
	}
	return e.policyName(policy, suffix)
}

// matchResources is nil where the binding narrows nothing.
func (e *emitter) matchResources(b Binding) *admissionregistrationv1.MatchResources {
	exclude := slices.DeleteFunc(slices.Clone(e.opts.Excluded()), func(ns string) bool { return slices.Contains(b.Reaches, ns) })
	c := Constraints{
		Rules:             b.Rules,
		NamespaceSelector: b.NamespaceSelector.excludeNamespaces(exclude),
		ObjectSelector:    b.ObjectSelector,
	}
	if c.NamespaceSelector.IsEmpty() && c.ObjectSelector.IsEmpty() && len(c.Rules) == 0 {
		return nil
	}
	return c.MatchResources()
}

func (p *ParamRef) object() *admissionregistrationv1.ParamRef {
	if p == nil {
		return nil
	}
	notFound := admissionregistrationv1.ParameterNotFoundActionType(p.NotFound)
	if notFound == "" {
		notFound = defaultNotFound
	}
	out := &admissionregistrationv1.ParamRef{Name: p.Name, Namespace: p.Namespace, ParameterNotFoundAction: &notFound}
	if p.Selector != nil {
		out.Selector = p.Selector.object()
	}
	return out
}
