package controller

import (
	"cmp"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// foundConfigMaps are the ConfigMaps that a pass has rules judged by: those that exist when it
// begins. Of one that cannot be read there are only the params that were made of it, and
// nil stands for it.
type foundConfigMaps map[configMapRef]*corev1.ConfigMap

// refs are those that were found, in order.
func (f foundConfigMaps) refs() []configMapRef {
	return slices.SortedFunc(maps.Keys(f), func(a, b configMapRef) int {
		return cmp.Or(cmp.Compare(a.namespace, b.namespace), cmp.Compare(a.name, b.name))
	})
}

// has tells that a ConfigMap was found.
func (f foundConfigMaps) has(ref configMapRef) bool {
	_, ok := f[ref]
	return ok
}

// lacking are the ConfigMaps that rules read and that were not found. One of the namespace
// of each object is lacking in these namespaces. Of one whose namespace is being deleted the
// params go soon, be it before the ConfigMap, and cannot be made anew.
func (f foundConfigMaps) lacking(refs []configMapRef, all []namespace) []configMapRef {
	going := map[string]bool{}
	for _, n := range all {
		going[n.name] = n.going
	}
	var out []configMapRef
	lack := func(ref configMapRef) {
		if !f.has(ref) || going[ref.namespace] {
			out = append(out, ref)
		}
	}
	for _, ref := range refs {
		if ref.namespace != "" {
			lack(ref)
			continue
		}
		for _, n := range all {
			lack(configMapRef{n.name, ref.name})
		}
	}
	return out
}
