package schema

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	apischema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

// ErrNotFound is wrapped by Resolver's errors. It is not the API server's own
// ErrSchemaNotFound: that would link all of client-go. The type checker skips the
// kind for either; it only logs this one, at level 2.
var ErrNotFound = errors.New("schema not found")

// A Resolver hands the types of a set to the API server's own type checker. It is
// a SchemaResolver of k8s.io/apiserver/pkg/cel/openapi/resolver.
type Resolver struct{ set *Set }

// Resolver is for a validating.TypeChecker. Its schemas say what values are at
// run time, so the checker's false alarms about quantities, times and bytes do
// not occur; StatusResolver is for what the cluster's own checker will say.
func (s *Set) Resolver() Resolver { return Resolver{set: s} }

// ResolveSchema is the schema of a kind, with all references resolved. Where a
// type refers to itself the inner one is unknown. Each call makes a new schema.
func (r Resolver) ResolveSchema(kind apischema.GroupVersionKind) (*spec.Schema, error) {
	t := r.set.Type(GVK(kind))
	if t == nil {
		return nil, fmt.Errorf("cannot resolve %v: %w", kind, ErrNotFound)
	}
	return openAPI(t, map[*Type]bool{}), nil
}

// openAPI makes a schema of a type. What has no single static type (any value,
// an int or a string, an int or a double, a value or null, an object with more
// than its known fields) becomes an int-or-string, which the checker takes for dyn.
func openAPI(t *Type, within map[*Type]bool) *spec.Schema {
	if t.Nullable || t.Open && !t.Published || within[t] {
		return dyn()
	}
	within[t] = true
	defer delete(within, t)
	switch t.Kind {
	case Bool:
		return typed("boolean")
	case Int:
		return typed("integer")
	case String:
		return typed("string")
	case List:
		s := typed("array")
		s.Items = &spec.SchemaOrArray{Schema: openAPI(t.Elem, within)}
		return s
	case Map:
		s := typed("object")
		s.AdditionalProperties = &spec.SchemaOrBool{Allows: true, Schema: openAPI(t.Elem, within)}
		return s
	case Object:
		return openAPIObject(t, within)
	}
	return dyn()
}

func openAPIObject(t *Type, within map[*Type]bool) *spec.Schema {
	s := typed("object")
	s.Properties = make(map[string]spec.Schema, len(t.Fields))
	for name, f := range t.Fields {
		s.Properties[name] = *openAPI(f.Type, within)
		if f.Required {
			s.Required = append(s.Required, name)
		}
	}
	slices.Sort(s.Required)
	return s
}

func typed(name string) *spec.Schema {
	return &spec.Schema{SchemaProps: spec.SchemaProps{Type: spec.StringOrArray{name}}}
}

func dyn() *spec.Schema {
	return &spec.Schema{VendorExtensible: spec.VendorExtensible{
		Extensions: spec.Extensions{"x-kubernetes-int-or-string": true},
	}}
}

// RESTMapper maps the resources of the set to their kinds, as the API server's
// discovery does. Among the versions of a group the newest stable one counts for
// whoever does not name one.
func (s *Set) RESTMapper() meta.RESTMapper {
	versions := s.versions()
	all := meta.NewDefaultRESTMapper(versions)
	for _, r := range s.resources {
		gv := apischema.GroupVersion{Group: r.Group, Version: r.Version}
		scope := meta.RESTScopeRoot
		if r.Namespaced {
			scope = meta.RESTScopeNamespace
		}
		all.AddSpecific(gv.WithKind(r.Kind), gv.WithResource(r.Plural), gv.WithResource(strings.ToLower(r.Kind)), scope)
	}
	m := meta.PriorityRESTMapper{Delegate: all}
	for _, gv := range versions {
		m.ResourcePriority = append(m.ResourcePriority, gv.WithResource(meta.AnyResource))
		m.KindPriority = append(m.KindPriority, gv.WithKind(meta.AnyKind))
	}
	if s.published == nil {
		return m
	}
	return publishedMapper{m, s}
}

// A publishedMapper knows the published kinds too, where group, version and resource are
// given, as the type checker gives them.
type publishedMapper struct {
	meta.RESTMapper
	set *Set
}

// KindsFor is the kind of a resource.
func (m publishedMapper) KindsFor(resource apischema.GroupVersionResource) ([]apischema.GroupVersionKind, error) {
	found, err := m.RESTMapper.KindsFor(resource)
	if err != nil {
		if r, ok := m.set.ByResource(resource.Group, resource.Version, resource.Resource); ok {
			return []apischema.GroupVersionKind{apischema.GroupVersionKind(r.GVK)}, nil
		}
	}
	return found, err
}

// versions are the versions of the set's groups, the preferred one of a group
// first.
func (s *Set) versions() []apischema.GroupVersion {
	var versions []apischema.GroupVersion
	for _, r := range s.resources {
		versions = append(versions, apischema.GroupVersion{Group: r.Group, Version: r.Version})
	}
	slices.SortFunc(versions, func(a, b apischema.GroupVersion) int {
		return cmp.Or(cmp.Compare(a.Group, b.Group), version.CompareKubeAwareVersionStrings(b.Version, a.Version))
	})
	return slices.Compact(versions)
}
