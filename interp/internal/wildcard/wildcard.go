package wildcard

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// Match tells whether text has the form of pattern, in which * stands for any run
// of characters, the empty one and ones with slashes and newlines included, and ?
// for exactly one. Nothing escapes them.
func Match(pattern, text string) bool {
	star := strings.IndexByte(pattern, '*')
	if star < 0 {
		n := prefix(pattern, text)
		return n == len(text)
	}
	n := prefix(pattern[:star], text)
	if n < 0 {
		return false
	}
	text, pattern = text[n:], pattern[star+1:]
	for {
		star = strings.IndexByte(pattern, '*')
		if star < 0 {
			return suffix(pattern, text)
		}
		end := find(pattern[:star], text)
		if end < 0 {
			return false
		}
		text, pattern = text[end:], pattern[star+1:]
	}
}

// prefix is the length of what a pattern without * matches at the front of a text,
// or -1.
func prefix(pattern, text string) int {
	t := 0
	for p := range len(pattern) {
		switch {
		case t == len(text):
			return -1
		case pattern[p] == '?':
			_, size := utf8.DecodeRuneInString(text[t:])
			t += size
		case pattern[p] != text[t]:
			return -1
		default:
			t++
		}
	}
	return t
}

// find is where the first match of a pattern without * ends in a text, or -1.
func find(pattern, text string) int {
	if !strings.Contains(pattern, "?") {
		if i := strings.Index(text, pattern); i >= 0 {
			return i + len(pattern)
		}
		return -1
	}
	for at := 0; at <= len(text); {
		if n := prefix(pattern, text[at:]); n >= 0 {
			return at + n
		}
		_, size := utf8.DecodeRuneInString(text[at:])
		at += max(size, 1)
	}
	return -1
}

// suffix tells whether the end of a text matches a pattern without *.
func suffix(pattern, text string) bool {
	if !strings.Contains(pattern, "?") {
		return strings.HasSuffix(text, pattern)
	}
	for at := 0; at <= len(text); {
		if n := prefix(pattern, text[at:]); n >= 0 && at+n == len(text) {
			return true
		}
		_, size := utf8.DecodeRuneInString(text[at:])
		at += max(size, 1)
	}
	return false
}

// Has tells whether s holds a character that Match does not take literally.
func Has(s string) bool {
	for i := range len(s) {
		if s[i] == '*' || s[i] == '?' {
			return true
		}
	}
	return false
}

// Any tells whether any of the patterns matches text.
func Any(patterns []string, text string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool { return Match(p, text) })
}
