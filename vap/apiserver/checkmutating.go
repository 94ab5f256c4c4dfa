package apiserver

import (
	"strings"

	celgo "github.com/google/cel-go/cel"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/cel/mutation"

	"github.com/kvap/kvap/vap"
)

// ValidateMutating says what an API server of the release would refuse a
// MutatingAdmissionPolicy for. The object has its defaults written.
func (c *Checker) ValidateMutating(p *admissionregistrationv1.MutatingAdmissionPolicy) field.ErrorList {
	errs := validateName(p.Name)
	spec := field.NewPath("spec")
	if p.Spec.FailurePolicy != nil {
		errs = append(errs, supported(spec.Child("failurePolicy"), *p.Spec.FailurePolicy, admissionregistrationv1.Fail, admissionregistrationv1.Ignore)...)
	}
	errs = append(errs, validateParamKind(p.Spec.ParamKind, spec.Child("paramKind"))...)
	errs = append(errs, validateMutatingMatch(p.Spec.MatchConstraints, spec.Child("matchConstraints"))...)
	e := expressions{Checker: c, params: p.Spec.ParamKind != nil}
	c.forget()
	errs = append(errs, e.conditions(p.Spec.MatchConditions, spec.Child("matchConditions"))...)
	errs = append(errs, e.variables(p.Spec.Variables, spec.Child("variables"))...)
	if len(p.Spec.Mutations) == 0 {
		errs = append(errs, field.Required(spec.Child("mutations"), "mutations must contain at least one item"))
	}
	for i, m := range p.Spec.Mutations {
		errs = append(errs, e.mutation(m, spec.Child("mutations").Index(i))...)
	}
	if p.Spec.ReinvocationPolicy == "" {
		return append(errs, field.Required(spec.Child("reinvocationPolicy"), ""))
	}
	return append(errs, supported(spec.Child("reinvocationPolicy"), p.Spec.ReinvocationPolicy,
		admissionregistrationv1.NeverReinvocationPolicy, admissionregistrationv1.IfNeededReinvocationPolicy)...)
}

// MutatingRefusals are what ValidateMutating says, in few words.
func (c *Checker) MutatingRefusals(p *admissionregistrationv1.MutatingAdmissionPolicy) (out []vap.Refusal) {
	for _, e := range c.ValidateMutating(p) {
		out = append(out, vap.Refusal{Field: e.Field, Message: FirstMessage(e.Detail)})
	}
	return out
}

func validateMutatingMatch(m *admissionregistrationv1.MatchResources, at *field.Path) field.ErrorList {
	if m == nil {
		return field.ErrorList{field.Required(at, "")}
	}
	errs := validateMatchResources(m, at)
	if len(m.ResourceRules) == 0 {
		errs = append(errs, field.Required(at.Child("resourceRules"), ""))
	}
	for _, r := range m.ResourceRules {
		for _, op := range r.Operations {
			errs = append(errs, supported(at.Child("resourceRules", "operations"), op, admissionregistrationv1.Create, admissionregistrationv1.Update,
				admissionregistrationv1.Connect, admissionregistrationv1.OperationAll)...)
		}
	}
	return errs
}

// mutation checks the one expression that the patch type asks for.
func (c expressions) mutation(m admissionregistrationv1.Mutation, at *field.Path) field.ErrorList {
	r := reach{authorizer: true, variables: true, patches: true}
	switch m.PatchType {
	case admissionregistrationv1.PatchTypeJSONPatch:
		if m.JSONPatch == nil {
			return field.ErrorList{field.Required(at.Child("jsonPatch"), "must be specified when patchType is JSONPatch")}
		}
		return c.check(strings.TrimSpace(m.JSONPatch.Expression), r, at.Child("jsonPatch", "expression"), celgo.ListType(celgo.ObjectType(mutation.JSONPatchTypeName)))
	case admissionregistrationv1.PatchTypeApplyConfiguration:
		if m.ApplyConfiguration == nil {
			return field.ErrorList{field.Required(at.Child("applyConfiguration"), "must be specified when patchType is ApplyConfiguration")}
		}
		return c.check(strings.TrimSpace(m.ApplyConfiguration.Expression), r, at.Child("applyConfiguration", "expression"), celgo.ObjectType(mutation.ObjectTypeName))
	}
	return supported(at.Child("patchType"), m.PatchType, admissionregistrationv1.PatchTypeJSONPatch, admissionregistrationv1.PatchTypeApplyConfiguration)
}

// ValidateMutatingBinding says what an API server would refuse the binding for.
func ValidateMutatingBinding(b *admissionregistrationv1.MutatingAdmissionPolicyBinding) field.ErrorList {
	errs := validateName(b.Name)
	spec := field.NewPath("spec")
	if b.Spec.PolicyName == "" {
		errs = append(errs, field.Required(spec.Child("policyName"), ""))
	}
	errs = append(errs, validateParamRef(b.Spec.ParamRef, spec.Child("paramRef"))...)
	if b.Spec.MatchResources != nil {
		errs = append(errs, validateMatchResources(b.Spec.MatchResources, spec.Child("matchResources"))...)
	}
	return errs
}
