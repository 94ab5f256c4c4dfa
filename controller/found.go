package controller

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// found are the ConfigMaps that a pass has rules judged by: those that exist when it
// begins. Of one that cannot be read there are only the params that were made of it, and
// nil stands for it.
type found map[types.NamespacedName]*corev1.ConfigMap

func (f found) keys() []types.NamespacedName {
	return slices.SortedFunc(maps.Keys(f), func(a, b types.NamespacedName) int { return strings.Compare(a.String(), b.String()) })
}

// has tells that a ConfigMap was found.
func (f found) has(ref configMapRef) bool {
	_, ok := f[types.NamespacedName{Namespace: ref.namespace, Name: ref.name}]
	return ok
}

// lacking are the ConfigMaps that rules read and that were not found. One of the namespace
// of each object is lacking in these namespaces. Of one whose namespace is being deleted the
// params go soon, be it before the ConfigMap, and cannot be made anew.
func (f found) lacking(refs []configMapRef, all []namespace) []configMapRef {
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
