package apiserver

import (
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/client-go/applyconfigurations"
	"k8s.io/client-go/kubernetes/scheme"
	smdschema "sigs.k8s.io/structured-merge-diff/v6/schema"
	"sigs.k8s.io/structured-merge-diff/v6/typed"

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
	root, err := m.rootOf(group, version, kind)
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

// rootOf is an object of a kind that has nothing in it.
func (m *Merging) rootOf(group, version, kind string) (*typed.TypedValue, error) {
	stub := &unstructured.Unstructured{}
	stub.SetGroupVersionKind(schema.GroupVersionKind{Group: group, Version: version, Kind: kind})
	return m.types().ObjectToTyped(stub)
}

// Keyed are the lists of a kind, outside of its status, whose elements are told apart by keys that
// have no default. An object that has an element without such a key is refused.
func (m *Merging) Keyed(group, version, kind string) (out []mutating.KeyedList) {
	root, err := m.rootOf(group, version, kind)
	if err != nil {
		return nil
	}
	var walk func(at smdschema.TypeRef, path []string, within []string)
	walk = func(at smdschema.TypeRef, path []string, within []string) {
		atom, ok := root.Schema().Resolve(at)
		if at.NamedType != nil {
			if slices.Contains(within, *at.NamedType) {
				return
			}
			within = append(slices.Clone(within), *at.NamedType)
		}
		switch {
		case !ok:
		case atom.Map != nil && atom.Map.ElementRelationship != smdschema.Atomic:
			for _, f := range atom.Map.Fields {
				if len(path) > 0 || f.Name != "status" {
					walk(f.Type, append(slices.Clone(path), f.Name), within)
				}
			}
		case atom.List != nil && atom.List.ElementRelationship != smdschema.Atomic:
			if keys := needed(root.Schema(), atom.List); len(keys) > 0 {
				out = append(out, mutating.KeyedList{Path: path, Keys: keys})
			}
			walk(atom.List.ElementType, append(slices.Clone(path), mutating.Element), within)
		}
	}
	walk(root.TypeRef(), nil, nil)
	return out
}

// needed are the keys of a list's elements that have no default.
func needed(s *smdschema.Schema, list *smdschema.List) []string {
	element, ok := s.Resolve(list.ElementType)
	return slices.DeleteFunc(slices.Clone(list.Keys), func(key string) bool {
		if !ok || element.Map == nil {
			return false
		}
		f, found := element.Map.FindField(key)
		return found && f.Default != nil
	})
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
