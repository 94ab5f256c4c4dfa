package schema

import (
	"encoding/json"
	"fmt"

	apischema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

// A StatusResolver hands out the schemas that kube-controller-manager has when it
// type-checks policies for their status. They differ from what values are: times and
// bytes have types of their own, and quantities none, so that to the checker there
// are no such fields. It is a SchemaResolver of k8s.io/apiserver/pkg/cel/openapi/resolver.
type StatusResolver struct{ set *Set }

// StatusResolver is for predicting the status of policies.
func (s *Set) StatusResolver() StatusResolver { return StatusResolver{s} }

// ResolveSchema is the schema of a kind with its references resolved, as
// resolver.PopulateRefs does it: inside of itself a type is an object without fields.
func (r StatusResolver) ResolveSchema(kind apischema.GroupVersionKind) (*spec.Schema, error) {
	src, ok := r.set.kinds[GVK(kind)]
	if !ok {
		return nil, fmt.Errorf("cannot resolve %v: %w", kind, ErrNotFound)
	}
	within := map[string]bool{}
	if src.crd == nil {
		return r.named(src.definition, within), nil
	}
	s := r.custom(src.crd, within)
	r.addResource(s, within)
	return s, nil
}

// named is the schema of a definition.
func (r StatusResolver) named(name string, within map[string]bool) *spec.Schema {
	switch name {
	case "io.k8s.apimachinery.pkg.api.resource.Quantity":
		return &spec.Schema{} // one of two types, so none
	case "io.k8s.apimachinery.pkg.util.intstr.IntOrString":
		return dyn()
	}
	if within[name] {
		return typed("object")
	}
	within[name] = true
	defer delete(within, name)
	var d definition
	if json.Unmarshal([]byte(r.set.definitions[name]), &d) != nil {
		return &spec.Schema{}
	}
	return r.builtin(&d, within)
}

func (r StatusResolver) builtin(d *definition, within map[string]bool) *spec.Schema {
	if d.Ref != "" {
		return r.named(d.Ref, within)
	}
	if d.Type == "" {
		return &spec.Schema{}
	}
	s := typed(d.Type)
	s.Format = d.Format
	s.Required = d.Required
	if d.Items != nil {
		s.Items = &spec.SchemaOrArray{Schema: r.builtin(d.Items, within)}
	}
	if d.Additional != nil {
		s.AdditionalProperties = &spec.SchemaOrBool{Allows: true, Schema: r.builtin(d.Additional, within)}
	}
	for name, p := range d.Properties {
		setProperty(s, name, r.builtin(p, within))
	}
	return s
}

// custom is the schema of a custom resource as the API server publishes it.
func (r StatusResolver) custom(c *crdSchema, within map[string]bool) *spec.Schema {
	if c.IntOrString {
		return dyn()
	}
	s := &spec.Schema{}
	if c.Type != "" {
		s = typed(c.Type)
	}
	s.Format = c.Format
	s.Required = c.Required
	if c.Items != nil {
		s.Items = &spec.SchemaOrArray{Schema: r.custom(c.Items, within)}
	}
	if c.Additional != nil && !c.Additional.none {
		any := &spec.SchemaOrBool{Allows: true}
		if c.Additional.schema != nil {
			any.Schema = r.custom(c.Additional.schema, within)
		}
		s.AdditionalProperties = any
	}
	for name, p := range c.Properties {
		if p != nil {
			setProperty(s, name, r.custom(p, within))
		}
	}
	if c.Embedded {
		r.addResource(s, within)
		s.Extensions = spec.Extensions{"x-kubernetes-embedded-resource": true}
	}
	return s
}

// addResource gives a schema what every object of the API server has.
func (r StatusResolver) addResource(s *spec.Schema, within map[string]bool) {
	s.Type = spec.StringOrArray{"object"}
	setProperty(s, "apiVersion", typed("string"))
	setProperty(s, "kind", typed("string"))
	setProperty(s, "metadata", r.named(objectMeta, within))
}

func setProperty(s *spec.Schema, name string, p *spec.Schema) {
	if s.Properties == nil {
		s.Properties = map[string]spec.Schema{}
	}
	s.Properties[name] = *p
}
