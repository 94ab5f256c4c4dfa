package judge

import (
	"maps"

	admissionv1 "k8s.io/api/admission/v1"
)

// generatedSuffix stands for the five random letters of a name that the API server
// generates. It is always the same, so that a request has one verdict.
const generatedSuffix = "x7k2d"

// named is an object to be created with the name that the API server generates from
// its generateName before it asks policies that validate. It is the object itself
// where there is nothing to generate.
func named(object map[string]any) (withName map[string]any, name string) {
	meta, _ := object["metadata"].(map[string]any)
	prefix, _ := meta["generateName"].(string)
	if given, _ := meta["name"].(string); given != "" || prefix == "" {
		return object, ""
	}
	name = prefix + generatedSuffix
	meta = maps.Clone(meta)
	meta["name"] = name
	object = maps.Clone(object)
	object["metadata"] = meta
	return object, name
}

// generateName gives the object to be created its name, and the request with it. Of
// a Namespace that is the request's namespace too.
func (r *Request) generateName(object map[string]any) map[string]any {
	if r.native.Operation != admissionv1.Create || r.native.SubResource != "" {
		return object
	}
	object, name := named(object)
	if name == "" {
		return object
	}
	r.native.Name, r.admission["name"] = name, name
	if r.native.Kind.Group == "" && r.native.Kind.Kind == "Namespace" {
		r.native.Namespace, r.admission["namespace"] = name, name
	}
	return object
}
