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
	r.generated = name
	r.native.Name, r.admission["name"] = name, name
	if r.native.Kind.Group == "" && r.native.Kind.Kind == "Namespace" {
		r.native.Namespace, r.admission["namespace"] = name, name
	}
	return object
}

// unnamed is the request as the API server asks those that change objects, which it does
// before it generates the name.
func (r *Request) unnamed() *Request {
	if r.generated == "" {
		return r
	}
	object := maps.Clone(r.Object())
	meta, _ := object["metadata"].(map[string]any)
	meta = maps.Clone(meta)
	delete(meta, "name")
	object["metadata"] = meta
	out := *r
	out.admission = maps.Clone(r.admission)
	out.admission["object"] = object
	delete(out.admission, "name")
	if r.native.Kind.Group == "" && r.native.Kind.Kind == "Namespace" {
		delete(out.admission, "namespace")
	}
	return &out
}
