package wildcard

import "unicode/utf8"

// Match tells whether text has the form of pattern, in which * stands for any run
// of characters, the empty one and ones with slashes and newlines included, and ?
// for exactly one. Nothing escapes them.
func Match(pattern, text string) bool {
	star, restart := -1, 0
	p, t := 0, 0
	for t < len(text) {
		if p < len(pattern) && pattern[p] == '*' {
			star, restart = p, t
			p++
			continue
		}
		if p < len(pattern) {
			if pattern[p] == '?' {
				_, size := utf8.DecodeRuneInString(text[t:])
				p, t = p+1, t+size
				continue
			}
			if pattern[p] == text[t] {
				p, t = p+1, t+1
				continue
			}
		}
		if star < 0 {
			return false
		}
		_, size := utf8.DecodeRuneInString(text[restart:])
		restart += size
		p, t = star+1, restart
	}
	for p < len(pattern) && pattern[p] == '*' {
		p++
	}
	return p == len(pattern)
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
	for _, p := range patterns {
		if Match(p, text) {
			return true
		}
	}
	return false
}
