package main

import (
	"slices"
	"strings"
)

// always lists the fields of a definition that are there, and not null, whenever a policy
// sees an object that has the definition: CEL reads them without has(). A validating policy
// sees an object after the API server has decoded, defaulted and validated it. A field is on
// the list when one of these holds:
//
//  1. Its Go field is a struct, a text, a number or a boolean, no pointer, without
//     omitempty, and the OpenAPI requires it. It is encoded even when it is empty.
//  2. It is the spec or a template of its object, a struct and no pointer, without
//     omitzero. Structs are encoded even with omitempty, for neither encoding/json nor the
//     API server's converter knows an empty struct. Others are left out, as the spec of a
//     Namespace, metadata of a template or resources of a container: they are there too,
//     but manifests that no API server has decoded mostly lack them, and kvap judges those
//     as well.
//  3. validated lists it.
//
// Required in the OpenAPI is not enough: it means "without omitempty", so that a nil list is
// null, as limits in a LimitRange.
func (b *builder) always(name string) ([]string, error) {
	var fields []string
	for field, p := range b.doc.Definitions[name].Properties {
		ok, err := b.isAlways(name, field, p)
		if err != nil {
			return nil, err
		}
		if ok {
			fields = append(fields, field)
		}
	}
	slices.Sort(fields)
	return fields, nil
}

// empty lists the lists and maps of a definition that may be there without an element. All
// others have one, or are not there: omitempty leaves an empty one out when it is encoded, and
// validation refuses one that validated lists.
func (b *builder) empty(name string) ([]string, error) {
	var fields []string
	for field, p := range b.doc.Definitions[name].Properties {
		if p.Type != "array" && p.Additional == nil {
			continue
		}
		f, known, err := b.src.field(name, field)
		if err != nil {
			return nil, err
		}
		omitted := known && f.omitempty && !f.omitzero && !f.pointer
		if !omitted && !validated(shortName(name)+"."+field) {
			fields = append(fields, field)
		}
	}
	slices.Sort(fields)
	return fields, nil
}

func (b *builder) isAlways(name, field string, p *definition) (bool, error) {
	f, known, err := b.src.field(name, field)
	switch {
	case err != nil || !known:
		return false, err
	case validated(shortName(name) + "." + field):
		return true, nil
	case f.pointer || f.omitzero:
		return false, nil
	case !f.omitempty && slices.Contains(b.doc.Definitions[name].Required, field):
		return b.neverNull(p), nil
	}
	structural := slices.Contains([]string{"spec", "template", "jobTemplate"}, field)
	return structural && shortName(name) != "core.Namespace" && b.isStruct(p), nil
}

// neverNull tells of a schema whose empty value has another encoding than null: of a list,
// a map, a time and of any JSON it is null.
func (b *builder) neverNull(p *definition) bool {
	switch p.Ref {
	case "":
		return slices.Contains([]string{"string", "integer", "number", "boolean"}, p.Type) && p.Format != "byte"
	case "io.k8s.apimachinery.pkg.api.resource.Quantity", "io.k8s.apimachinery.pkg.util.intstr.IntOrString":
		return true
	}
	return b.isStruct(p)
}

// isStruct tells of a reference to a definition that has fields.
func (b *builder) isStruct(p *definition) bool {
	d := b.doc.Definitions[p.Ref]
	return d != nil && len(d.Properties) > 0
}

// shortName is core.PodSpec for io.k8s.api.core.v1.PodSpec. Validation does not
// depend on the version.
func shortName(name string) string {
	parts := strings.Split(name, ".")
	n := len(parts)
	return parts[n-3] + "." + parts[n-1]
}

// validated lists the fields that can be left out or null, and whose absence validation
// refuses wherever their definition stands: k8s.io/kubernetes, pkg/apis/*/validation. One
// place is left out on purpose: before 1.34 the template of a StatefulSet is not validated.
// Of such a StatefulSet no Pod is ever made, for its Pods are validated.
func validated(field string) bool {
	switch field {
	case "apps.DaemonSetSpec.selector", // ValidateDaemonSetSpec
		"apps.DeploymentSpec.selector",            // ValidateDeploymentSpec
		"apps.ReplicaSetSpec.selector",            // ValidateReplicaSetSpec
		"apps.StatefulSetSpec.selector",           // ValidateStatefulSetSpec
		"core.Container.image",                    // validateContainerCommon
		"core.EphemeralContainer.image",           // validateContainerCommon
		"core.PodSpec.containers",                 // validateContainers
		"core.ReplicationControllerSpec.template", // ValidatePodTemplateSpecForRC
		"networking.HTTPIngressPath.pathType",     // validateHTTPIngressPath
		"networking.HTTPIngressRuleValue.paths",   // validateHTTPIngressRuleValue
		"rbac.PolicyRule.verbs":                   // ValidatePolicyRule
		return true
	}
	return false
}
