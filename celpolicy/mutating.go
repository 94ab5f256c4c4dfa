package celpolicy

import (
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"

	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/mutating"
	"github.com/kvap/kvap/policy"
)

// mutating is a MutatingPolicy for each binding of a native policy.
func (c *converter) mutating(p *policy.Policy, o mutating.Objects) (out []Object, why *diag.Diagnostic) {
	for i, b := range o.Draft.Bindings {
		e := newExpressions(p, &o.Draft.Draft, b)
		from := o.Policy.Spec
		one := c.object(p, "MutatingPolicy", o.Bindings[i].Name, &o.Draft.Draft)
		one.Spec = e.frame(admissionregistrationv1.ValidatingAdmissionPolicySpec{
			FailurePolicy: from.FailurePolicy, Variables: from.Variables, MatchConditions: from.MatchConditions,
		})
		for _, m := range from.Mutations {
			changed := admissionregistrationv1.Mutation{PatchType: m.PatchType}
			if m.JSONPatch != nil {
				changed.JSONPatch = &admissionregistrationv1.JSONPatch{Expression: e.text(m.JSONPatch.Expression, true)}
			} else {
				changed.ApplyConfiguration = &admissionregistrationv1.ApplyConfiguration{Expression: e.text(m.ApplyConfiguration.Expression, true)}
			}
			one.Spec.Mutations = append(one.Spec.Mutations, changed)
		}
		if b.Param != nil {
			e.refuse("a change that reads a ConfigMap")
		}
		if e.why != nil {
			return nil, e.why
		}
		out = append(out, one)
	}
	return out, nil
}
