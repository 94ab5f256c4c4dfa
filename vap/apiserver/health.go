package apiserver

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
