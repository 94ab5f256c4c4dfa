package anchor

import (
	"regexp"
	"strings"
)

// A Kind is that of a pattern's key.
type Kind int

// The kinds.
const (
	Plain       Kind = iota // k
	Conditional             // (k)
	Equality                // =(k)
	Negation                // X(k)
	Existence               // ^(k)
	Global                  // <(k)
)

// Split reads a key. A key like +(k) is literal: it has a meaning in
// mutations only.
func Split(key string) (Kind, string) {
	m := anchorPattern().FindStringSubmatch(strings.TrimSpace(key))
	if m == nil {
		return Plain, key
	}
	switch m[1] {
	case "":
		return Conditional, m[2]
	case "=":
		return Equality, m[2]
	case "X":
		return Negation, m[2]
	case "^":
		return Existence, m[2]
	case "<":
		return Global, m[2]
	}
	return Plain, key
}

var anchorSyntax = regexp.MustCompile(`^([+<=X^])?\((.+)\)$`)

func anchorPattern() *regexp.Regexp { return anchorSyntax }
