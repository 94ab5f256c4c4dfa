package v1alpha1

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Modes are the modes of a policy.
func Modes() []string { return []string{ModeShadow, ModeEnforce, ModeOff} }

// ModeOf is the mode of a policy: that of its annotation, its label, or the given
// one. bad is what is there in place of a mode.
func ModeOf(o metav1.Object, otherwise string) (mode, bad string) {
	for _, values := range []map[string]string{o.GetAnnotations(), o.GetLabels()} {
		if said, ok := values[ModeKey]; ok {
			if slices.Contains(Modes(), said) {
				return said, ""
			}
			return otherwise, said
		}
	}
	return otherwise, ""
}
