package apiserver

import (
	"fmt"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/cel/openapi/resolver"

	"github.com/kvap/kvap/cel"
)

// A TypeWarning is an expression that does not fit the schema of a kind that the
// policy matches.
type TypeWarning struct {
	Field   string // for instance spec.validations[0].expression
	Warning string // the API server's text, one part for each kind that it fails on
	// Hidden tells that no API server looks at this expression: it checks
	// validations and their messages, not variables and audit annotations.
	Hidden bool
}

// A TypeChecker is the API server's own type checker against some schemas and kinds:
// TypeChecker of k8s.io/apiserver/pkg/admission/plugin/policy/validating, save that it
// makes the environment for a kind once, and not with all variables for each
// expression, and that types are not called by the clock. It adds nothing for resources
// with a wildcard or of unknown kind, and stops after ten kinds of one rule.
type TypeChecker struct{ types *typedEnvs }

// NewTypeChecker makes a checker. It is for any number of policies, one after the other.
func NewTypeChecker(schemas resolver.SchemaResolver, mapper meta.RESTMapper) *TypeChecker {
	return &TypeChecker{newTypedEnvs(cel.Latest, baseEnvironment().StoredExpressionsEnv(), schemas, mapper)}
}

// Shown checks the expressions that an API server looks at.
func (c *TypeChecker) Shown(p *admissionregistrationv1.ValidatingAdmissionPolicy) []TypeWarning {
	return (&StatusChecker{c.types}).Check(p)
}

// Check checks these, and then the others: each variable with the ones before it, for
// later ones are not to be had. Match conditions are left out: an API server compiles them
// without the types of objects, and they may say of one kind what another does not have.
func (c *TypeChecker) Check(p *admissionregistrationv1.ValidatingAdmissionPolicy) []TypeWarning {
	spec := field.NewPath("spec")
	var shown, variables, audits typeProblems
	for _, on := range c.types.of(p) {
		for i, v := range p.Spec.Variables {
			variables.add(on, on.declare(v), spec.Child("variables").Index(i).Child("expression"))
		}
		shown.shown(on, p)
		for i, a := range p.Spec.AuditAnnotations {
			audits.check(on, a.ValueExpression, spec.Child("auditAnnotations").Index(i).Child("valueExpression"))
		}
	}
	return slices.Concat(shown.warnings(false), variables.warnings(true), audits.warnings(true))
}

// TypeCheck checks one policy.
func TypeCheck(p *admissionregistrationv1.ValidatingAdmissionPolicy, schemas resolver.SchemaResolver, mapper meta.RESTMapper) []TypeWarning {
	return NewTypeChecker(schemas, mapper).Check(p)
}

// typeProblems are what was found in the expressions of one list of a policy.
type typeProblems struct {
	fields []*field.Path // in the order of the list
	texts  map[string][]string
}

// shown checks validations and their messages.
func (t *typeProblems) shown(on *typedEnv, p *admissionregistrationv1.ValidatingAdmissionPolicy) {
	for i, v := range p.Spec.Validations {
		at := field.NewPath("spec", "validations").Index(i)
		t.check(on, v.Expression, at.Child("expression"))
		if v.MessageExpression != "" {
			t.check(on, v.MessageExpression, at.Child("messageExpression"))
		}
	}
}

func (t *typeProblems) check(on *typedEnv, text string, at *field.Path) {
	_, problem := on.compile(text)
	t.add(on, problem, at)
}

// add notes what there is to say of a field on a kind, if anything. Each kind has the
// fields in the same order.
func (t *typeProblems) add(on *typedEnv, problem string, at *field.Path) {
	key := at.String()
	if _, seen := t.texts[key]; !seen {
		if t.texts == nil {
			t.texts = map[string][]string{}
		}
		t.fields, t.texts[key] = append(t.fields, at), nil
	}
	if problem != "" {
		t.texts[key] = append(t.texts[key], fmt.Sprintf("%v: %s\n", on.kind, problem))
	}
}

// warnings are these problems, one for each field that has any.
func (t *typeProblems) warnings(hidden bool) []TypeWarning {
	var out []TypeWarning
	for _, at := range t.fields {
		if texts := t.texts[at.String()]; len(texts) > 0 {
			out = append(out, TypeWarning{Field: at.String(), Warning: strings.Join(texts, "\n"), Hidden: hidden})
		}
	}
	return out
}

// String is field and warning on one line.
func (w TypeWarning) String() string {
	return fmt.Sprintf("%s: %s", w.Field, strings.Join(strings.Fields(w.Warning), " "))
}
