package vap

import (
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// DefaultPolicy writes what the API server would into a policy as somebody wrote it.
func DefaultPolicy(p *admissionregistrationv1.ValidatingAdmissionPolicy) {
	p.Spec.FailurePolicy = orDefault(p.Spec.FailurePolicy, defaultFailurePolicy)
	defaultMatch(p.Spec.MatchConstraints)
}

// DefaultBinding writes what the API server would into a binding as somebody wrote it.
func DefaultBinding(b *admissionregistrationv1.ValidatingAdmissionPolicyBinding) {
	defaultMatch(b.Spec.MatchResources)
}

// DefaultMutating writes what the API server would into a policy as somebody wrote it.
func DefaultMutating(p *admissionregistrationv1.MutatingAdmissionPolicy) {
	p.Spec.FailurePolicy = orDefault(p.Spec.FailurePolicy, defaultFailurePolicy)
	defaultMatch(p.Spec.MatchConstraints)
}

// DefaultMutatingBinding writes what the API server would into a binding as somebody
// wrote it.
func DefaultMutatingBinding(b *admissionregistrationv1.MutatingAdmissionPolicyBinding) {
	defaultMatch(b.Spec.MatchResources)
}

func defaultMatch(m *admissionregistrationv1.MatchResources) {
	if m == nil {
		return
	}
	m.MatchPolicy = orDefault(m.MatchPolicy, defaultMatchPolicy)
	m.NamespaceSelector = orDefault(m.NamespaceSelector, metav1.LabelSelector{})
	m.ObjectSelector = orDefault(m.ObjectSelector, metav1.LabelSelector{})
	for _, rules := range [][]admissionregistrationv1.NamedRuleWithOperations{m.ResourceRules, m.ExcludeResourceRules} {
		for i := range rules {
			rules[i].Scope = orDefault(rules[i].Scope, admissionregistrationv1.AllScopes)
		}
	}
}

func orDefault[T any](value *T, otherwise T) *T {
	if value == nil {
		return &otherwise
	}
	return value
}
