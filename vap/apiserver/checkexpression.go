package apiserver

import (
	"fmt"
	"strings"

	celgo "github.com/google/cel-go/cel"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/kvap/kvap/vap"
)

// expressions are checked as those of one policy.
type expressions struct {
	*Checker
	params bool // the policy has some
}

// check compiles an expression that must have one of some types.
func (c expressions) check(text string, r reach, at *field.Path, types ...*celgo.Type) field.ErrorList {
	if strings.TrimSpace(text) == "" {
		return field.ErrorList{field.Required(at, "")}
	}
	r.params = c.params
	result := c.compile(text, r)
	if errs := result.errors(text, at); errs != nil {
		return errs
	}
	for _, t := range types {
		if result.output.IsExactType(t) {
			return nil
		}
	}
	if len(types) == 1 {
		return field.ErrorList{field.Invalid(at, text, fmt.Sprintf("must evaluate to %v but got %v", types[0], result.output))}
	}
	return field.ErrorList{field.Invalid(at, text, fmt.Sprintf("must evaluate to one of %v but got %v", types, result.output))}
}

func (c expressions) conditions(list []admissionregistrationv1.MatchCondition, at *field.Path) (errs field.ErrorList) {
	if len(list) > vap.MaxMatchConditions {
		errs = append(errs, field.TooMany(at, len(list), vap.MaxMatchConditions))
	}
	seen := map[string]bool{}
	for i, m := range list {
		for _, msg := range validation.IsQualifiedName(m.Name) {
			errs = append(errs, field.Invalid(at.Index(i).Child("name"), m.Name, msg))
		}
		if seen[m.Name] {
			errs = append(errs, field.Duplicate(at.Index(i).Child("name"), m.Name))
		}
		seen[m.Name] = true
		errs = append(errs, c.check(m.Expression, reach{authorizer: true}, at.Index(i).Child("expression"), celgo.BoolType)...)
	}
	return errs
}

// isVariableName tells that variables.name parses.
func isVariableName(name string) bool {
	switch name {
	case "true", "false", "null", "in", "as", "break", "const", "continue", "else", "for", "function", "if",
		"import", "let", "loop", "package", "namespace", "return", "var", "void", "while":
		return false
	}
	for i, r := range name {
		if r != '_' && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (i == 0 || r < '0' || r > '9') {
			return false
		}
	}
	return name != ""
}

func (c expressions) variables(list []admissionregistrationv1.Variable, at *field.Path) (errs field.ErrorList) {
	for i, v := range list {
		if !isVariableName(v.Name) {
			errs = append(errs, field.Invalid(at.Index(i).Child("name"), v.Name, "name is not a valid CEL identifier"))
			continue
		}
		if strings.TrimSpace(v.Expression) == "" {
			errs = append(errs, field.Required(at.Index(i).Child("expression"), ""))
			continue
		}
		result := c.compile(v.Expression, reach{params: c.params, authorizer: true, variables: true})
		c.declare(v.Name, result.output)
		errs = append(errs, result.errors(v.Expression, at.Index(i).Child("expression"))...)
	}
	return errs
}

func (c expressions) validations(list []admissionregistrationv1.Validation, at *field.Path) (errs field.ErrorList) {
	for i, v := range list {
		at := at.Index(i)
		errs = append(errs, c.check(v.Expression, reach{authorizer: true, variables: true}, at.Child("expression"), celgo.BoolType)...)
		if v.MessageExpression != "" {
			errs = append(errs, c.check(v.MessageExpression, reach{variables: true}, at.Child("messageExpression"), celgo.StringType)...)
		}
		switch {
		case v.Message != "" && strings.TrimSpace(v.Message) == "":
			errs = append(errs, field.Invalid(at.Child("message"), v.Message, "message must be non-empty if specified"))
		case strings.ContainsAny(strings.TrimSpace(v.Message), "\n\r"):
			errs = append(errs, field.Invalid(at.Child("message"), v.Message, "message must not contain line breaks"))
		}
		if v.Reason != nil {
			errs = append(errs, supported(at.Child("reason"), *v.Reason,
				metav1.StatusReasonForbidden, metav1.StatusReasonInvalid, metav1.StatusReasonRequestEntityTooLarge)...)
		}
	}
	return errs
}

func (c expressions) audits(policy string, list []admissionregistrationv1.AuditAnnotation, at *field.Path) (errs field.ErrorList) {
	if len(list) > vap.MaxAuditAnnotations {
		errs = append(errs, field.Invalid(at, len(list), fmt.Sprintf("must not have more than %d auditAnnotations", vap.MaxAuditAnnotations)))
	}
	seen := map[string]bool{}
	for i, a := range list {
		at := at.Index(i)
		for _, msg := range validation.IsQualifiedName(policy + "/" + a.Key) {
			errs = append(errs, field.Invalid(at.Child("key"), a.Key, msg))
		}
		if seen[a.Key] {
			errs = append(errs, field.Duplicate(at.Child("key"), a.Key))
		}
		seen[a.Key] = true
		if len(a.ValueExpression) > vap.MaxAuditExpression {
			errs = append(errs, field.TooLong(at.Child("valueExpression"), "", vap.MaxAuditExpression))
		}
		errs = append(errs, c.check(a.ValueExpression, reach{authorizer: true, variables: true}, at.Child("valueExpression"), celgo.StringType, celgo.NullType)...)
	}
	return errs
}
