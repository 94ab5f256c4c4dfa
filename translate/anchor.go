package translate

import (
	"regexp"
	"strings"
)

// An anchor is the kind of a pattern's key.
type anchor int

const (
	plain       anchor = iota // k
	conditional               // (k)
	equality                  // =(k)
	negation                  // X(k)
	existence                 // ^(k)
	global                    // <(k)
)

// splitAnchor reads a key. A key like +(k) is literal: it has a meaning in
// mutations only.
func splitAnchor(key string) (anchor, string) {
	m := anchorPattern().FindStringSubmatch(strings.TrimSpace(key))
	if m == nil {
		return plain, key
	}
	switch m[1] {
	case "":
		return conditional, m[2]
	case "=":
		return equality, m[2]
	case "X":
		return negation, m[2]
	case "^":
		return existence, m[2]
	case "<":
		return global, m[2]
	}
	return plain, key
}

var anchorSyntax = regexp.MustCompile(`^([+<=X^])?\((.+)\)$`)

func anchorPattern() *regexp.Regexp { return anchorSyntax }
