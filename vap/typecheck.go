package vap

import (
	"fmt"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/admission/plugin/policy/validating"
	"k8s.io/apiserver/pkg/cel/openapi/resolver"
)

// A TypeWarning is an expression that does not fit the schema of a kind that the
// policy matches.
type TypeWarning struct {
	Field   string // for instance spec.validations[0].expression
	Warning string // the API server's text, one part for each kind that it fails on
	// Hidden tells that no API server looks at this expression: it checks
	// validations and their messages, not variables, match conditions and audit
	// annotations.
	Hidden bool
}

// TypeCheck runs the API server's own type checker against the schemas and kinds
// given, on the expressions that a server checks and then on the others. It adds
// nothing for resources with a wildcard or of unknown kind, and stops after ten
// kinds of one rule, as the server does.
func TypeCheck(p *admissionregistrationv1.ValidatingAdmissionPolicy, schemas resolver.SchemaResolver, mapper meta.RESTMapper) []TypeWarning {
	checker := &validating.TypeChecker{SchemaResolver: schemas, RestMapper: mapper}
	out := append(checkShown(checker, p), checkHidden(checker, p)...)
	for i := range out {
		out[i].Warning = withoutClock(out[i].Warning)
	}
	return out
}

// TypeCheckShown is TypeCheck of the expressions alone that an API server looks at.
func TypeCheckShown(p *admissionregistrationv1.ValidatingAdmissionPolicy, schemas resolver.SchemaResolver, mapper meta.RESTMapper) []TypeWarning {
	out := checkShown(&validating.TypeChecker{SchemaResolver: schemas, RestMapper: mapper}, p)
	for i := range out {
		out[i].Warning = withoutClock(out[i].Warning)
	}
	return out
}

func checkShown(checker *validating.TypeChecker, p *admissionregistrationv1.ValidatingAdmissionPolicy) []TypeWarning {
	var out []TypeWarning
	for _, w := range checker.Check(p) {
		out = append(out, TypeWarning{Field: w.FieldRef, Warning: w.Warning})
	}
	return out
}

// checkHidden checks each variable with the ones before it, for later ones are
// not to be had, and match conditions with none.
func checkHidden(checker *validating.TypeChecker, p *admissionregistrationv1.ValidatingAdmissionPolicy) []TypeWarning {
	var out []TypeWarning
	spec := field.NewPath("spec")
	with := map[int]*validating.TypeCheckingContext{} // so many variables; what it makes of the schemas takes longer than the checking
	check := func(variables int, text string, at *field.Path) {
		if with[variables] == nil {
			prefix := p.DeepCopy()
			prefix.Spec.Variables = p.Spec.Variables[:variables]
			with[variables] = checker.CreateContext(prefix)
		}
		if results := checker.CheckExpression(with[variables], text); len(results) > 0 {
			out = append(out, TypeWarning{Field: at.String(), Warning: results.String(), Hidden: true})
		}
	}
	for i, v := range p.Spec.Variables {
		check(i, v.Expression, spec.Child("variables").Index(i).Child("expression"))
	}
	for i, m := range p.Spec.MatchConditions {
		check(0, m.Expression, spec.Child("matchConditions").Index(i).Child("expression"))
	}
	for i, a := range p.Spec.AuditAnnotations {
		check(len(p.Spec.Variables), a.ValueExpression, spec.Child("auditAnnotations").Index(i).Child("valueExpression"))
	}
	return out
}

// String is field and warning on one line.
func (w TypeWarning) String() string {
	return fmt.Sprintf("%s: %s", w.Field, strings.Join(strings.Fields(w.Warning), " "))
}
