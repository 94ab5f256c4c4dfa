package policy

import "strings"

// A KindSelector is an entry of kinds. Each part is a wildcard pattern; an empty
// Subresource stands for requests without one.
type KindSelector struct {
	Group, Version, Kind, Subresource string
}

// ParseKind splits an entry of kinds as Kyverno does. It is not ok for more than
// four parts, which match nothing.
func ParseKind(text string) (s KindSelector, ok bool) {
	parts := strings.Split(text, "/")
	last := len(parts) - 1
	parts = append(parts[:last], strings.Split(parts[last], ".")...)
	switch len(parts) {
	case 1:
		return KindSelector{"*", "*", parts[0], ""}, true
	case 2:
		return pairKind(parts[0], parts[1]), true
	case 3:
		if parts[0] == "*" || isVersion(parts[0]) {
			return KindSelector{"*", parts[0], parts[1], parts[2]}, true
		}
		return KindSelector{parts[0], parts[1], parts[2], ""}, true
	case 4:
		return KindSelector{parts[0], parts[1], parts[2], parts[3]}, true
	}
	return KindSelector{}, false
}

// String is an entry of kinds that ParseKind reads as s.
func (s KindSelector) String() string {
	switch {
	case s == KindSelector{"*", "*", s.Kind, ""}:
		return s.Kind
	case s.Group == "*" && s.Subresource == "":
		return s.Version + "/" + s.Kind
	case s.Subresource == "":
		return s.Group + "/" + s.Version + "/" + s.Kind
	}
	return s.Group + "/" + s.Version + "/" + s.Kind + "/" + s.Subresource
}

// pairKind reads two parts: everything, any kind with a subresource, a version
// and a kind, or a kind and a subresource.
func pairKind(a, b string) KindSelector {
	switch {
	case a == "*" && b == "*":
		return KindSelector{"*", "*", "*", "*"}
	case a == "*" && b == strings.ToLower(b):
		return KindSelector{"*", "*", "*", b}
	case a == "*" || isVersion(a):
		return KindSelector{"*", a, b, ""}
	}
	return KindSelector{"*", "*", a, b}
}

// isVersion tells whether text is v, a number, and perhaps alpha or beta and
// another number.
func isVersion(text string) bool {
	rest, ok := strings.CutPrefix(text, "v")
	if !ok || !startsWithDigit(rest) {
		return false
	}
	rest = strings.TrimLeft(rest, "0123456789")
	if rest == "" {
		return true
	}
	for _, stage := range []string{"alpha", "beta"} {
		if number, ok := strings.CutPrefix(rest, stage); ok {
			return startsWithDigit(number) && strings.Trim(number, "0123456789") == ""
		}
	}
	return false
}

func startsWithDigit(s string) bool { return s != "" && '0' <= s[0] && s[0] <= '9' }

// Wildcard matches text with a pattern in which * is any text and ? any one
// character.
func Wildcard(pattern, text string) bool {
	p, t := []rune(pattern), []rune(text)
	star, mark, at := -1, 0, 0
	for i := 0; i < len(t) || at < len(p); {
		switch {
		case at < len(p) && p[at] == '*':
			star, mark = at, i
			at++
		case i < len(t) && at < len(p) && (p[at] == '?' || p[at] == t[i]):
			at++
			i++
		case star >= 0 && mark < len(t):
			mark++ // let the last star take one more
			at, i = star+1, mark
		default:
			return false
		}
	}
	return true
}
