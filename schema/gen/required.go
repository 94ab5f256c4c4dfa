package main

import (
	"slices"
	"strings"
)

// always lists the fields of a definition that are there, and not null, whenever
// the object itself is there: a policy's CEL reads them without has(). A field is
// on the list when structural names it, and one of these holds:
//
//  1. The field is required in the OpenAPI, and its Go field is a struct or a
//     string, no pointer, without omitempty. Such a field is encoded even when it
//     is empty.
//  2. The field is required in the OpenAPI and validated lists it: it would be
//     null when it is empty, but validation refuses that.
//  3. The Go field is a struct, no pointer, without omitzero, and the struct has a
//     field that is always there by 1, 2 or 3. Structs are encoded even with
//     omitempty, for neither encoding/json nor the API server's converter knows an
//     empty struct. This covers spec of a Pod, of the pod controllers and of their
//     templates.
//
// Required in the OpenAPI is not enough: it means "without omitempty", so that a
// nil list is null, as limits in a LimitRange.
func (b *builder) always(name string) ([]string, error) {
	if fields, ok := b.alwaysThere[name]; ok {
		return fields, nil
	}
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
	b.alwaysThere[name] = fields
	return fields, nil
}

func (b *builder) isAlways(name, field string, p *definition) (bool, error) {
	f, known, err := b.src.field(name, field)
	if err != nil || !structural(field) || !known {
		return false, err
	}
	required := slices.Contains(b.doc.Definitions[name].Required, field)
	if required && validated(shortName(name)+"."+field) {
		return true, nil
	}
	if required && !f.pointer && !f.omitempty && (p.Ref != "" || p.Type == "string") {
		return true, nil
	}
	if p.Ref == "" || f.pointer || f.omitzero {
		return false, nil
	}
	// A Go struct cannot hold itself, so this ends.
	inner, err := b.always(p.Ref)
	return len(inner) > 0, err
}

// shortName is core.PodSpec for io.k8s.api.core.v1.PodSpec. Validation does not
// depend on the version.
func shortName(name string) string {
	parts := strings.Split(name, ".")
	n := len(parts)
	return parts[n-3] + "." + parts[n-1]
}

// structural lists the fields that give an object its structure, and its parts
// their identity. The list is short on purpose. kvap also judges objects that no
// API server has validated: manifests in a pipeline and recorded requests. These
// lack required fields at times, and mostly the very ones that a policy asks for,
// such as the path of a hostPath, the port of a Service or the operator of a
// selector. A has() costs nothing at run time; an error would turn the verdict.
func structural(field string) bool {
	switch field {
	case "containers", "jobTemplate", "kind", "name", "roleRef", "scaleTargetRef", "selector", "spec", "template":
		return true
	}
	return false
}

// validated lists the lists and pointers whose absence the validation of
// k8s.io/kubernetes (pkg/apis/*/validation) refuses.
func validated(field string) bool {
	switch field {
	case "apps.DaemonSetSpec.selector",
		"apps.DeploymentSpec.selector",
		"apps.ReplicaSetSpec.selector",
		"apps.StatefulSetSpec.selector",
		"core.PodSpec.containers":
		return true
	}
	return false
}
