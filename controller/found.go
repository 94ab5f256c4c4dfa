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

// lacking are the ConfigMaps that rules read and that were not found. One of the namespace
// of each object is lacking in these namespaces.
func (f found) lacking(refs []configMapRef, all []namespace) []configMapRef {
	var out []configMapRef
	lack := func(ref configMapRef) {
		if _, ok := f[types.NamespacedName{Namespace: ref.namespace, Name: ref.name}]; !ok {
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
