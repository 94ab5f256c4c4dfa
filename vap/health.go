package vap

import (
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
)

// ClusterWarnings are what the type checker of a cluster wrote into the status of a
// policy. checked is false where it has not looked at the policy as it is now.
func ClusterWarnings(p *admissionregistrationv1.ValidatingAdmissionPolicy) (warnings []TypeWarning, checked bool) {
	if p.Status.ObservedGeneration != p.Generation || p.Status.TypeChecking == nil {
		return nil, false
	}
	for _, w := range p.Status.TypeChecking.ExpressionWarnings {
		warnings = append(warnings, TypeWarning{Field: w.FieldRef, Warning: withoutClock(w.Warning)})
	}
	return warnings, true
}

// Of is the member that a field of the policy is for, and the place in its source
// that the field was made from. ok is false for a field of no single member.
func (t Translation) Of(field string) (member TranslatedMember, line int, path string, ok bool) {
	var i int
	if !index(field, "spec.validations[%d]", &i) || i >= len(t.Validations) {
		return TranslatedMember{}, 0, "", false
	}
	v := t.Validations[i]
	return t.Members[v.Member], v.Line, v.Path, true
}
