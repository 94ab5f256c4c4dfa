package celpolicy

import (
	"slices"

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
		if e.mutations(&one.Spec, from.Mutations, from.Variables) {
			one.Spec.Variables = nil
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

// mutations adds the mutations, and tells whether variables are written out in them.
func (e *expressions) mutations(to *Spec, from []admissionregistrationv1.Mutation, variables []admissionregistrationv1.Variable) (inlined bool) {
	inlined = e.changesBetween(from)
	for _, m := range from {
		changed := admissionregistrationv1.Mutation{PatchType: m.PatchType}
		if m.JSONPatch != nil {
			changed.JSONPatch = &admissionregistrationv1.JSONPatch{Expression: e.change(m.JSONPatch.Expression, variables, inlined)}
		} else {
			changed.ApplyConfiguration = &admissionregistrationv1.ApplyConfiguration{Expression: e.change(m.ApplyConfiguration.Expression, variables, inlined)}
		}
		to.Mutations = append(to.Mutations, changed)
	}
	return inlined
}

// changesBetween tells that several mutations read variables. Natively each computes them from the
// object as it is then; Kyverno computes them once.
func (e *expressions) changesBetween(mutations []admissionregistrationv1.Mutation) bool {
	reading := 0
	for _, m := range mutations {
		text := ""
		if m.JSONPatch != nil {
			text = m.JSONPatch.Expression
		} else {
			text = m.ApplyConfiguration.Expression
		}
		if len(e.parsed(text).Uses("variables")) > 0 {
			reading++
		}
	}
	return reading > 1
}

// change is what a mutation makes, with the variables written out where that is needed.
func (e *expressions) change(native string, variables []admissionregistrationv1.Variable, inlined bool) string {
	if !inlined {
		return e.text(native, true)
	}
	v := e.value(native, true)
	for _, x := range slices.Backward(variables) {
		v = v.SubstituteField("variables", x.Name, e.value(x.Expression, true))
	}
	return v.Text(width)
}
