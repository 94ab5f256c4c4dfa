package scalar

import (
	"fmt"
	"regexp"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// The parts of a JSON list that Go's decoder reads as one of strings: null is empty.
const (
	jsonSpace  = `[ \t\n\r]*`
	jsonString = `"([^"\\\x00-\x1f]|\\(["\\/bfnrt]|u[0-9a-fA-F]{4}))*"`
	jsonItem   = jsonSpace + `(` + jsonString + `|null)` + jsonSpace
)

// JSONListWith is a regular expression for the texts that are JSON lists of strings
// among which is word, however it is escaped. There is none for the character that
// stands for what is no character: lone surrogates are read as it.
func JSONListWith(word string) (re string, ok bool) {
	if strings.ContainsRune(word, utf8.RuneError) {
		return "", false
	}
	is := `"` + jsonEscapes(word) + `"`
	if word == "" {
		is = `(""|null)`
	}
	return `^` + jsonSpace + `\[(` + jsonItem + `,)*` + jsonSpace + is + jsonSpace + `(,` + jsonItem + `)*\]` + jsonSpace + `$`, true
}

// jsonEscapes is a regular expression for what a word may look like in a JSON string.
func jsonEscapes(word string) string {
	var b strings.Builder
	for _, r := range word {
		b.WriteString(`(`)
		if r >= ' ' && r != '"' && r != '\\' {
			b.WriteString(regexp.QuoteMeta(string(r)) + `|`)
		}
		if i := strings.IndexRune("\"\\/\b\f\n\r\t", r); i >= 0 {
			b.WriteString(`\\` + regexp.QuoteMeta(`"\/bfnrt`[i:i+1]) + `|`)
		}
		for _, unit := range utf16.Encode([]rune{r}) {
			fmt.Fprintf(&b, `\\u(?i:%04x)`, unit)
		}
		b.WriteString(`)`)
	}
	return b.String()
}
