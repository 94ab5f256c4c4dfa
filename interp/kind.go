package interp

import (
	"strings"

	"github.com/kvap/kvap/interp/internal/datum"
	"github.com/kvap/kvap/interp/internal/wildcard"
)

// A kindSelector is one entry of a filter's kinds. Its parts are wildcards.
type kindSelector struct {
	group, version, kind, subresource string
}

// parseKind reads group/version/Kind/subresource, of which only the kind must
// be there; the subresource may follow a dot. ok is false for a text that can
// match nothing.
func parseKind(text string) (s kindSelector, ok bool) {
	parts := strings.Split(text, "/")
	last := parts[len(parts)-1]
	parts = append(parts[:len(parts)-1], strings.Split(last, ".")...)
	switch len(parts) {
	case 1:
		return kindSelector{"*", "*", parts[0], ""}, true
	case 2:
		return parseTwoParts(parts[0], parts[1]), true
	case 3:
		if isVersion(parts[0]) {
			return kindSelector{"*", parts[0], parts[1], parts[2]}, true
		}
		return kindSelector{parts[0], parts[1], parts[2], ""}, true
	case 4:
		return kindSelector{parts[0], parts[1], parts[2], parts[3]}, true
	}
	return kindSelector{}, false
}

func parseTwoParts(a, b string) kindSelector {
	switch {
	case a == "*" && b == "*":
		return kindSelector{"*", "*", "*", "*"}
	case a == "*" && b == strings.ToLower(b):
		return kindSelector{"*", "*", "*", b}
	case isVersion(a):
		return kindSelector{"*", a, b, ""}
	}
	return kindSelector{"*", "*", a, b}
}

// isVersion tells whether a part of a selector is an API version: *, v1, v1beta2.
func isVersion(s string) bool {
	if s == "*" {
		return true
	}
	if !strings.HasPrefix(s, "v") {
		return false
	}
	n := datum.CountDigits(s[1:])
	rest := s[1+n:]
	if n == 0 || rest == "" {
		return n > 0
	}
	for _, stage := range []string{"alpha", "beta"} {
		if after, ok := strings.CutPrefix(rest, stage); ok {
			return after != "" && datum.CountDigits(after) == len(after)
		}
	}
	return false
}

// matches tells whether a request's resource is among those that s selects.
func (s kindSelector) matches(k resourceKind) bool {
	if !wildcard.Match(s.group, k.group) || !wildcard.Match(s.version, k.version) || !wildcard.Match(s.kind, k.kind) {
		return false
	}
	if wildcard.Match(s.subresource, k.subresource) {
		return true
	}
	// Adding an ephemeral container to a pod counts as a change of the pod.
	return k == ephemeralContainers()
}

// A resourceKind is what a request is about: the kind of the resource itself,
// even where the object in the request is of another one, such as a Scale.
type resourceKind struct {
	group, version, kind, subresource string
}

// ephemeralContainers are a part of pods that whoever selects pods is asked about.
func ephemeralContainers() resourceKind { return resourceKind{"", "v1", "Pod", "ephemeralcontainers"} }

// asksFor tells whether s makes Kyverno send requests about k: pods bring their
// ephemeral containers with them, pods/exec brings itself alone (1.5).
func (s kindSelector) asksFor(k resourceKind) bool {
	return s.matches(k) && (s.subresource == "" || wildcard.Match(s.subresource, k.subresource))
}
