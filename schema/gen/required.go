package main

import (
	"slices"
	"strings"
)

// guarantee lists the fields of a definition that are there, and not null,
// whenever the object itself is there, in every object that the API server has
// decoded and validated. Three rules, each safe by itself:
//
//  1. The field is required in the OpenAPI, its Go field has no omitempty, and it
//     is neither pointer, list, map, bytes nor time. Such a field is encoded even
//     when it is zero.
//  2. The field is required in the OpenAPI and validated() lists it: its zero
//     value would be left out or be null, but does not pass validation.
//  3. The Go field is a struct, no pointer, without omitzero, and the struct has a field that is
//     guaranteed by 1, 2 or 3. Structs are encoded even with omitempty, for neither
//     encoding/json nor the API server's converter knows an empty struct. This
//     covers spec of a Pod, of the pod controllers and of their templates. A
//     status is left out: manifests do not have it. A struct without a
//     guaranteed field, such as a container's resources, is left out too: in
//     manifests and recorded requests it is often missing.
//
// What OpenAPI calls required is not enough: it means "without omitempty", and
// a nil list is then null, as limits in a LimitRange.
func (b *builder) guarantee(name string) ([]string, error) {
	if fields, ok := b.required[name]; ok {
		return fields, nil
	}
	fields, err := b.direct(name)
	if err != nil {
		return nil, err
	}
	for field, p := range b.doc.Definitions[name].Properties {
		if p.Ref == "" || field == "status" || slices.Contains(fields, field) {
			continue
		}
		f, ok, err := b.src.field(name, field)
		if err != nil {
			return nil, err
		}
		if !ok || f.pointer || f.omitzero {
			continue
		}
		// A Go struct cannot hold itself, so this ends.
		inner, err := b.guarantee(p.Ref)
		if err != nil {
			return nil, err
		}
		if len(inner) > 0 {
			fields = append(fields, field)
		}
	}
	slices.Sort(fields)
	b.required[name] = fields
	return fields, nil
}

// direct are the fields that rules 1 and 2 guarantee.
func (b *builder) direct(name string) ([]string, error) {
	d := b.doc.Definitions[name]
	var fields []string
	for _, field := range d.Required {
		f, known, err := b.src.field(name, field)
		if err != nil {
			return nil, err
		}
		encoded := known && !f.pointer && !f.omitempty && !nullable(d.Properties[field])
		if encoded || validated(shortName(name)+"."+field) {
			fields = append(fields, field)
		}
	}
	return fields, nil
}

// nullable tells whether the zero value of a Go field with this schema is null
// in JSON.
func nullable(d *definition) bool {
	switch d.Ref {
	case "":
		return d.Type == "array" || d.Type == "object" || d.Type == "" || d.Format == "byte" || d.Format == "date-time"
	case "io.k8s.apimachinery.pkg.apis.meta.v1.Time",
		"io.k8s.apimachinery.pkg.apis.meta.v1.MicroTime",
		"io.k8s.apimachinery.pkg.apis.meta.v1.FieldsV1",
		"io.k8s.apimachinery.pkg.runtime.RawExtension":
		return true
	}
	return strings.Contains(d.Ref, ".apiextensions.v1.JSON")
}

// shortName is core.PodSpec for io.k8s.api.core.v1.PodSpec. Validation does not
// depend on the version.
func shortName(name string) string {
	parts := strings.Split(name, ".")
	n := len(parts)
	return parts[n-3] + "." + parts[n-1]
}

// validated lists the required lists, maps, pointers and omitempty fields whose
// zero value is refused by the validation of k8s.io/kubernetes (pkg/apis/*/validation).
// A field that is not here is only not known to be there, which costs a has().
func validated(field string) bool {
	switch field {
	case "admissionregistration.MutatingWebhook.admissionReviewVersions",
		"admissionregistration.MutatingWebhook.sideEffects",
		"admissionregistration.ValidatingWebhook.admissionReviewVersions",
		"admissionregistration.ValidatingWebhook.sideEffects",
		"admissionregistration.ValidatingAdmissionPolicyBindingSpec.policyName",
		"admissionregistration.ValidatingAdmissionPolicyBindingSpec.validationActions",
		"apiextensions.CustomResourceDefinitionSpec.versions",
		"apps.DaemonSetSpec.selector",
		"apps.DeploymentSpec.selector",
		"apps.ReplicaSetSpec.selector",
		"apps.StatefulSetSpec.selector",
		"batch.PodFailurePolicyOnExitCodesRequirement.values",
		"batch.SuccessPolicy.rules",
		"certificates.CertificateSigningRequestSpec.request",
		"core.NodeSelector.nodeSelectorTerms",
		"core.PodSpec.containers",
		"core.TopologySelectorLabelRequirement.values",
		"discovery.Endpoint.addresses",
		"flowcontrol.NonResourcePolicyRule.nonResourceURLs",
		"flowcontrol.NonResourcePolicyRule.verbs",
		"flowcontrol.PolicyRulesWithSubjects.subjects",
		"flowcontrol.ResourcePolicyRule.apiGroups",
		"flowcontrol.ResourcePolicyRule.resources",
		"flowcontrol.ResourcePolicyRule.verbs",
		"networking.HTTPIngressPath.pathType",
		"networking.HTTPIngressRuleValue.paths",
		"rbac.PolicyRule.verbs":
		return true
	}
	return false
}
