package celpolicy

import (
	"slices"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"

	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/mutating"
	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/vap"
)

// existing is the MutatingPolicy of a draft that changes objects that are there.
func (c *converter) existing(p *policy.Policy, d *mutating.Existing) ([]Object, *diag.Diagnostic) {
	from, found := mutating.EmitExisting(d, vap.EmitOptions{})
	if found.HasErrors() {
		return nil, &found[0]
	}
	e := newExpressions(p, &d.Draft.Draft, d.Bindings[0])
	out := c.object(p, "MutatingPolicy", from.Policy.Name, &d.Draft.Draft)
	out.Spec = e.frame(from.Policy.Spec)
	if out.Spec.Evaluation == nil {
		out.Spec.Evaluation = &Evaluation{}
	}
	out.Spec.Evaluation.MutateExisting = &Switch{true}
	if d.Idle {
		out.Spec.Evaluation.Admission = &Switch{}
	}
	if d.OwnRequests {
		out.Spec.Evaluation.SkipBackgroundRequests = new(bool)
	}
	out.Spec.TargetConstraints = &TargetConstraints{Expression: e.text(from.Find, true)}
	if d.Status {
		written := vap.Constraints{Rules: d.Changed}.MatchResources().ResourceRules
		written[0].Resources[0] += "/status"
		written[0].Scope = nil
		out.Spec.TargetConstraints.ResourceRules = written
	}
	for _, m := range from.Of {
		out.Spec.TargetConditions = append(out.Spec.TargetConditions, admissionregistrationv1.MatchCondition{Name: m.Name, Expression: e.boolean(m.Expression, true)})
	}
	e.mutations(&out.Spec, from.Mutations, from.Policy.Spec.Variables)
	if d.Bindings[0].Param != nil {
		params := admissionregistrationv1.Variable{Name: e.named, Expression: e.params.Text(width)}
		out.Spec.Variables = slices.Insert(out.Spec.Variables, 0, params)
	}
	e.dropUnread(&out.Spec)
	return []Object{out}, e.why
}
