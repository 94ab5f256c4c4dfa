package read

import (
	"strings"
	"unicode"
)

// Singular is the name for an element of the list called field: container for
// initContainers.
func Singular(field string) string {
	last := 0
	for i, r := range field {
		if unicode.IsUpper(r) {
			last = i
		}
		if r > unicode.MaxASCII || !unicode.IsLetter(r) {
			return "item"
		}
	}
	word := strings.ToLower(field[last:])
	switch {
	case strings.HasSuffix(word, "ies"):
		word = word[:len(word)-3] + "y"
	case strings.HasSuffix(word, "sses"):
		word = word[:len(word)-2]
	case strings.HasSuffix(word, "s") && !strings.HasSuffix(word, "ss") && len(word) > 3:
		word = word[:len(word)-1]
	}
	if len(word) < 2 {
		return "item"
	}
	return word
}

// Capital is s with a capital first letter.
func Capital(s string) string { return strings.ToUpper(s[:1]) + s[1:] }
