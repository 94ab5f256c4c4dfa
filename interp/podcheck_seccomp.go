package interp

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
)

func seccompAnnotations(p *pod) podViolation {
	keys := []string{corev1.SeccompPodAnnotationKey}
	for _, c := range p.containers() {
		keys = append(keys, corev1.SeccompContainerAnnotationKeyPrefix+c.Name)
	}
	var bad []fieldError
	for _, k := range keys {
		v, ok := p.meta.Annotations[k]
		if ok && v != "runtime/default" && v != "docker/default" && !strings.HasPrefix(v, "localhost/") {
			bad = append(bad, fieldError{field: "metadata.annotations[" + k + "]", bad: v})
		}
	}
	return because("seccompProfile", bad)
}

func seccompAllowed(s *corev1.SeccompProfile) bool {
	return s.Type == corev1.SeccompProfileTypeLocalhost || s.Type == corev1.SeccompProfileTypeRuntimeDefault
}

// seccompSet lists the profiles that are set to what is not allowed.
func seccompSet(p *pod) []fieldError {
	var bad []fieldError
	if s := p.security().SeccompProfile; s != nil && !seccompAllowed(s) {
		bad = append(bad, podForbidden("securityContext.seccompProfile.type", string(s.Type)))
	}
	for _, c := range p.containers() {
		if s := c.security().SeccompProfile; s != nil && !seccompAllowed(s) {
			bad = append(bad, c.forbidden("seccompProfile.type", string(s.Type)))
		}
	}
	return bad
}

func seccompExplicit(p *pod) podViolation { return because("seccompProfile", seccompSet(p)) }

// seccompRequired lists missing profiles only when none is set to what is not
// allowed.
func seccompRequired(p *pod) podViolation {
	bad := seccompSet(p)
	if s := p.security().SeccompProfile; len(bad) > 0 || s != nil {
		return because("seccompProfile", bad)
	}
	for _, c := range p.containers() {
		if c.security().SeccompProfile == nil {
			bad = append(bad, c.missing("seccompProfile.type"))
		}
	}
	return because("seccompProfile", bad)
}
