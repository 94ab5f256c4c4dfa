package apiserver

import (
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/api/validation/path"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/vap"
)

// Validate says what an API server of the release would refuse the policy for
// when it is created.
func Validate(p *admissionregistrationv1.ValidatingAdmissionPolicy, release cel.Release) field.ErrorList {
	return NewChecker(release).Validate(p)
}

// Validate says what an API server of the release would refuse the policy for
// when it is created. It compiles each expression in that release's environment
// for new expressions, which knows what the release before it knew.
//
// The rules on fields are those of k8s.io/kubernetes/pkg/apis/admissionregistration/validation,
// which cannot be imported. They are for objects with defaults written, as Emit
// makes them: an absent default is an error here.
func (c *Checker) Validate(p *admissionregistrationv1.ValidatingAdmissionPolicy) field.ErrorList {
	return append(c.ValidateHead(p), c.ValidateBody(p)...)
}

// ValidateHead is the part of Validate that is about which requests the policy is for.
func (c *Checker) ValidateHead(p *admissionregistrationv1.ValidatingAdmissionPolicy) field.ErrorList {
	var errs field.ErrorList
	errs = append(errs, validateName(p.Name)...)
	spec := field.NewPath("spec")
	if p.Spec.FailurePolicy == nil {
		errs = append(errs, field.Required(spec.Child("failurePolicy"), ""))
	} else {
		errs = append(errs, supported(spec.Child("failurePolicy"), *p.Spec.FailurePolicy, admissionregistrationv1.Fail, admissionregistrationv1.Ignore)...)
	}
	errs = append(errs, validateParamKind(p.Spec.ParamKind, spec.Child("paramKind"))...)
	if p.Spec.MatchConstraints == nil {
		errs = append(errs, field.Required(spec.Child("matchConstraints"), ""))
	} else {
		constraints := spec.Child("matchConstraints")
		errs = append(errs, validateMatchResources(p.Spec.MatchConstraints, constraints)...)
		if len(p.Spec.MatchConstraints.ResourceRules) == 0 {
			errs = append(errs, field.Required(constraints.Child("resourceRules"), ""))
		}
	}
	if len(p.Spec.Validations)+len(p.Spec.AuditAnnotations) == 0 {
		errs = append(errs, field.Required(spec.Child("validations"), "validations or auditAnnotations must contain at least one item"))
	}
	e := expressions{Checker: c, params: p.Spec.ParamKind != nil}
	c.forget()
	return append(errs, e.conditions(p.Spec.MatchConditions, spec.Child("matchConditions"))...)
}

// ValidateBody is the other part, about what is asked of them.
func (c *Checker) ValidateBody(p *admissionregistrationv1.ValidatingAdmissionPolicy) field.ErrorList {
	spec := field.NewPath("spec")
	e := expressions{Checker: c, params: p.Spec.ParamKind != nil}
	c.forget()
	errs := e.variables(p.Spec.Variables, spec.Child("variables"))
	errs = append(errs, e.validations(p.Spec.Validations, spec.Child("validations"))...)
	return append(errs, e.audits(p.Name, p.Spec.AuditAnnotations, spec.Child("auditAnnotations"))...)
}

// Refusals are what Validate says, in few words.
func (c *Checker) Refusals(p *admissionregistrationv1.ValidatingAdmissionPolicy) (out []vap.Refusal) {
	for _, e := range c.Validate(p) {
		out = append(out, vap.Refusal{Field: e.Field, Message: FirstMessage(e.Detail)})
	}
	return out
}

// ValidateBinding says what an API server would refuse the binding for.
func ValidateBinding(b *admissionregistrationv1.ValidatingAdmissionPolicyBinding) field.ErrorList {
	errs := validateName(b.Name)
	spec := field.NewPath("spec")
	if b.Spec.PolicyName == "" {
		errs = append(errs, field.Required(spec.Child("policyName"), ""))
	}
	for _, msg := range validation.IsDNS1123Subdomain(b.Spec.PolicyName) {
		errs = append(errs, field.Invalid(spec.Child("policyName"), b.Spec.PolicyName, msg))
	}
	errs = append(errs, validateParamRef(b.Spec.ParamRef, spec.Child("paramRef"))...)
	if b.Spec.MatchResources != nil {
		errs = append(errs, validateMatchResources(b.Spec.MatchResources, spec.Child("matchResources"))...)
	}
	return append(errs, validateActions(b.Spec.ValidationActions, spec.Child("validationActions"))...)
}

func validateName(name string) (errs field.ErrorList) {
	for _, msg := range validation.IsDNS1123Subdomain(name) {
		errs = append(errs, field.Invalid(field.NewPath("metadata", "name"), name, msg))
	}
	return errs
}

func supported[T ~string](at *field.Path, value T, allowed ...T) field.ErrorList {
	if slices.Contains(allowed, value) {
		return nil
	}
	return field.ErrorList{field.NotSupported(at, value, allowed)}
}

func validateParamKind(p *admissionregistrationv1.ParamKind, at *field.Path) (errs field.ErrorList) {
	if p == nil {
		return nil
	}
	group, v, ok := strings.Cut(p.APIVersion, "/")
	if !ok {
		group, v = "", p.APIVersion
	}
	check := func(child, value string, msgs []string) {
		for _, msg := range msgs {
			errs = append(errs, field.Invalid(at.Child(child), value, msg))
		}
	}
	if group != "" {
		check("apiVersion", group, validation.IsDNS1123Subdomain(group))
	}
	check("apiVersion", v, validation.IsDNS1035Label(v))
	check("kind", p.Kind, validation.IsDNS1035Label(strings.ToLower(p.Kind)))
	return errs
}

func validateParamRef(r *admissionregistrationv1.ParamRef, at *field.Path) (errs field.ErrorList) {
	if r == nil {
		return nil
	}
	switch {
	case r.Name != "" && r.Selector != nil:
		errs = append(errs, field.Forbidden(at.Child("name"), "name and selector are mutually exclusive"))
	case r.Name == "" && r.Selector == nil:
		errs = append(errs, field.Required(at, "one of name or selector must be specified"))
	case r.Name != "":
		for _, msg := range path.ValidatePathSegmentName(r.Name, false) { //nolint:staticcheck // it is the API server that calls it
			errs = append(errs, field.Invalid(at.Child("name"), r.Name, msg))
		}
	default:
		errs = append(errs, validateSelector(r.Selector, at.Child("selector"))...)
	}
	if r.ParameterNotFoundAction == nil {
		return append(errs, field.Required(at.Child("parameterNotFoundAction"), ""))
	}
	return append(errs, supported(at.Child("parameterNotFoundAction"), *r.ParameterNotFoundAction,
		admissionregistrationv1.AllowAction, admissionregistrationv1.DenyAction)...)
}

func validateActions(actions []admissionregistrationv1.ValidationAction, at *field.Path) (errs field.ErrorList) {
	if len(actions) == 0 {
		return field.ErrorList{field.Required(at, "at least one validation action is required")}
	}
	seen := map[admissionregistrationv1.ValidationAction]bool{}
	for i, a := range actions {
		errs = append(errs, supported(at.Index(i), a, admissionregistrationv1.Deny, admissionregistrationv1.Warn, admissionregistrationv1.Audit)...)
		if seen[a] {
			errs = append(errs, field.Duplicate(at.Index(i), a))
		}
		seen[a] = true
	}
	if seen[admissionregistrationv1.Deny] && seen[admissionregistrationv1.Warn] {
		errs = append(errs, field.Invalid(at, actions, "must not contain both Deny and Warn (repeating the same validation failure information in the API response and headers serves no purpose)"))
	}
	return errs
}

func validateSelector(s *metav1.LabelSelector, at *field.Path) (errs field.ErrorList) {
	if s == nil {
		return field.ErrorList{field.Required(at, "")}
	}
	if _, err := metav1.LabelSelectorAsSelector(s); err != nil { // also checks keys, values and operators
		errs = append(errs, field.Invalid(at, s, err.Error()))
	}
	return errs
}

func validateMatchResources(m *admissionregistrationv1.MatchResources, at *field.Path) (errs field.ErrorList) {
	errs = append(errs, validateSelector(m.NamespaceSelector, at.Child("namespaceSelector"))...)
	errs = append(errs, validateSelector(m.ObjectSelector, at.Child("objectSelector"))...)
	if m.MatchPolicy == nil {
		errs = append(errs, field.Required(at.Child("matchPolicy"), ""))
	} else {
		errs = append(errs, supported(at.Child("matchPolicy"), *m.MatchPolicy, admissionregistrationv1.Exact, admissionregistrationv1.Equivalent)...)
	}
	for i := range m.ResourceRules {
		errs = append(errs, validateResourceRule(&m.ResourceRules[i], at.Child("resourceRules").Index(i))...)
	}
	for i := range m.ExcludeResourceRules {
		errs = append(errs, validateResourceRule(&m.ExcludeResourceRules[i], at.Child("excludeResourceRules").Index(i))...)
	}
	return errs
}

func validateResourceRule(r *admissionregistrationv1.NamedRuleWithOperations, at *field.Path) (errs field.ErrorList) {
	for i, name := range r.ResourceNames {
		for _, msg := range path.ValidatePathSegmentName(name, false) { //nolint:staticcheck // it is the API server that calls it
			errs = append(errs, field.Invalid(at.Child("resourceNames").Index(i), name, msg))
		}
		if slices.Contains(r.ResourceNames[:i], name) {
			errs = append(errs, field.Duplicate(at.Child("resourceNames").Index(i), name))
		}
	}
	for i, op := range r.Operations {
		errs = append(errs, supported(at.Child("operations").Index(i), op, admissionregistrationv1.Create, admissionregistrationv1.Update,
			admissionregistrationv1.Delete, admissionregistrationv1.Connect, admissionregistrationv1.OperationAll)...)
	}
	errs = append(errs, aloneOrListed(r.Operations, at.Child("operations"))...)
	errs = append(errs, aloneOrListed(r.APIGroups, at.Child("apiGroups"))...)
	errs = append(errs, aloneOrListed(r.APIVersions, at.Child("apiVersions"))...)
	for i, v := range r.APIVersions {
		if v == "" {
			errs = append(errs, field.Required(at.Child("apiVersions").Index(i), ""))
		}
	}
	errs = append(errs, validateResources(r.Resources, at.Child("resources"))...)
	if r.Scope == nil {
		return append(errs, field.Required(at.Child("scope"), ""))
	}
	return append(errs, supported(at.Child("scope"), *r.Scope,
		admissionregistrationv1.ClusterScope, admissionregistrationv1.NamespacedScope, admissionregistrationv1.AllScopes)...)
}

// aloneOrListed wants at least one entry, and nothing beside the word *.
func aloneOrListed[T ~string](list []T, at *field.Path) field.ErrorList {
	if len(list) == 0 {
		return field.ErrorList{field.Required(at, "")}
	}
	if len(list) > 1 && slices.Contains(list, "*") {
		return field.ErrorList{field.Invalid(at, list, "if '*' is present, must not specify others")}
	}
	return nil
}

// validateResources refuses an entry that a wildcard beside it covers.
func validateResources(list []string, at *field.Path) (errs field.ErrorList) {
	if len(list) == 0 {
		return field.ErrorList{field.Required(at, "")}
	}
	anyOf, subresourcesOf := map[string]bool{}, map[string]bool{}
	double := false
	for i, entry := range list {
		if entry == "" {
			errs = append(errs, field.Required(at.Index(i), ""))
			continue
		}
		if entry == "*/*" {
			double = true
		}
		res, sub, nested := strings.Cut(entry, "/")
		if anyOf[res+"/*"] || nested && subresourcesOf["*/"+sub] {
			errs = append(errs, field.Invalid(at.Index(i), entry, "if a wildcard is present, must not specify what it covers"))
		}
		if nested && sub == "*" {
			anyOf[entry] = true
		}
		if nested && res == "*" {
			subresourcesOf[entry] = true
		}
	}
	if len(list) > 1 && double {
		errs = append(errs, field.Invalid(at, list, "if '*/*' is present, must not specify other resources"))
	}
	if slices.Contains(list, "*") && slices.ContainsFunc(list, func(r string) bool { return r != "*" && !strings.Contains(r, "/") }) {
		errs = append(errs, field.Invalid(at, list, "if '*' is present, must not specify other resources without subresources"))
	}
	return errs
}
