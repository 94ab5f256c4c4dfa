package apiserver

import (
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/client-go/applyconfigurations"
	"k8s.io/client-go/kubernetes/scheme"
	smdschema "sigs.k8s.io/structured-merge-diff/v6/schema"

	"github.com/kvap/kvap/mutating"
)

// Merging knows how apply configurations are merged into objects of built-in kinds. It is
// safe for concurrent use.
type Merging struct {
	types func() managedfields.TypeConverter
}

// NewMerging reads nothing before it is asked.
func NewMerging() *Merging {
	return &Merging{types: sync.OnceValue(func() managedfields.TypeConverter { return applyconfigurations.NewTypeConverter(scheme.Scheme) })}
}

// Of is how what stands at a path is merged. The step from a list to its elements is
// mutating.Element. A path below what is atomic is atomic.
func (m *Merging) Of(group, version, kind string, path []string) mutating.Merge {
	stub := &unstructured.Unstructured{}
	stub.SetGroupVersionKind(schema.GroupVersionKind{Group: group, Version: version, Kind: kind})
	root, err := m.types().ObjectToTyped(stub)
	if err != nil {
		return mutating.Merge{}
	}
	out, at := mutating.Merge{Known: true}, root.TypeRef()
	for _, step := range append([]string{""}, path...) {
		var ok bool
		if step != "" {
			if at, ok = stepTo(root.Schema(), at, step); !ok {
				return mutating.Merge{}
			}
		}
		atom, ok := root.Schema().Resolve(at)
		if !ok {
			return mutating.Merge{}
		}
		out.Keys = nil
		switch {
		case atom.Map != nil:
			out.Atomic = out.Atomic || atom.Map.ElementRelationship == smdschema.Atomic
		case atom.List != nil:
			out.Atomic = out.Atomic || atom.List.ElementRelationship == smdschema.Atomic
			out.Keys = atom.List.Keys
		}
	}
	return out
}

// stepTo is the type of a field, of a value of a map, or of an element of a list.
func stepTo(s *smdschema.Schema, at smdschema.TypeRef, step string) (smdschema.TypeRef, bool) {
	atom, ok := s.Resolve(at)
	switch {
	case !ok:
		return at, false
	case atom.List != nil && step == mutating.Element:
		return atom.List.ElementType, true
	case atom.Map == nil:
		return at, false
	}
	if f, ok := atom.Map.FindField(step); ok {
		return f.Type, true
	}
	return atom.Map.ElementType, len(atom.Map.Fields) == 0
}
