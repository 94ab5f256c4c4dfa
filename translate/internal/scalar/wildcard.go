package scalar

import (
	"regexp"
	"slices"
	"strings"
)

// Anything is the pattern that every text matches.
const Anything = "*"

// IsWild tells whether a text holds * or ?.
func IsWild(s string) bool { return strings.ContainsAny(s, "*?") }

// IsAnything tells whether a pattern is * or ?*, which match every text that is not
// empty.
func IsAnything(p string) bool {
	switch Collapse(p) {
	case "*", "?*", "*?":
		return true
	}
	return false
}

// Collapse brings runs of * to one.
func Collapse(p string) string {
	for strings.Contains(p, "**") {
		p = strings.ReplaceAll(p, "**", "*")
	}
	return p
}

// WildRegexp is the RE2 form of a pattern, for the whole text, newlines included.
func WildRegexp(p string) string {
	var b strings.Builder
	b.WriteString("^")
	for _, r := range p {
		switch r {
		case '*':
			b.WriteString(".*")
		case '?':
			b.WriteString(".")
		default:
			b.WriteString(regexp.QuoteMeta(string(r)))
		}
	}
	b.WriteString("$")
	return "(?s)" + b.String()
}

// WildMatch tells whether text s matches pattern p: * is any run of characters,
// also an empty one, and ? exactly one.
func WildMatch(p, s string) bool {
	pattern, text := []rune(p), []rune(s)
	i, j := 0, 0
	star, from := -1, 0 // the last * and the text that it has to take up at least
	for j < len(text) {
		switch {
		case i < len(pattern) && pattern[i] == '*':
			star, from = i, j
			i++
		case i < len(pattern) && (pattern[i] == '?' || pattern[i] == text[j]):
			i, j = i+1, j+1
		case star >= 0:
			from++
			i, j = star+1, from
		default:
			return false
		}
	}
	for i < len(pattern) && pattern[i] == '*' {
		i++
	}
	return i == len(pattern)
}

// AnyWild tells whether a pattern matches the text.
func AnyWild(texts []string, s string) bool {
	return slices.ContainsFunc(texts, func(t string) bool { return WildMatch(t, s) })
}
