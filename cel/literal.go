package cel

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// quote writes s as CEL's documentation does: in single quotes, in double quotes
// when that spares escapes, and raw when s holds backslashes, as regexes do.
func quote(s string) string {
	q := "'"
	if strings.Contains(s, "'") && !strings.Contains(s, `"`) {
		q = `"`
	}
	if strings.Contains(s, `\`) && !strings.Contains(s, q) && !needsEscape(s) {
		return "r" + q + s + q
	}
	var b strings.Builder
	b.WriteString(q)
	for _, r := range s {
		escape(&b, r, q[0])
	}
	b.WriteString(q)
	return b.String()
}

// needsEscape tells that s has a character that a reader could not see. A raw
// literal cannot escape it.
func needsEscape(s string) bool {
	return strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) })
}

func escape(b *strings.Builder, r rune, q byte) {
	switch {
	case r == rune(q) || r == '\\':
		b.WriteByte('\\')
		b.WriteRune(r)
	case r == '\n':
		b.WriteString(`\n`)
	case r == '\r':
		b.WriteString(`\r`)
	case r == '\t':
		b.WriteString(`\t`)
	case unicode.IsPrint(r):
		b.WriteRune(r)
	case r <= 0xFFFF:
		fmt.Fprintf(b, `\u%04x`, r)
	default:
		fmt.Fprintf(b, `\U%08x`, r)
	}
}

func quoteBytes(s string) string {
	var b strings.Builder
	b.WriteString("b'")
	for i := range len(s) {
		switch c := s[i]; {
		case c == '\'' || c == '\\':
			b.WriteByte('\\')
			b.WriteByte(c)
		case c < ' ' || c >= utf8.RuneSelf || c == 0x7F:
			fmt.Fprintf(&b, `\x%02x`, c)
		default:
			b.WriteByte(c)
		}
	}
	b.WriteByte('\'')
	return b.String()
}

// number writes f so that it stays a double. CEL has no literals for what is no
// number or not finite.
func number(f float64) string {
	switch {
	case math.IsNaN(f):
		return "double('NaN')"
	case math.IsInf(f, 1):
		return "double('Infinity')"
	case math.IsInf(f, -1):
		return "double('-Infinity')"
	}
	s := strconv.FormatFloat(f, 'g', -1, 64)
	if !strings.ContainsAny(s, ".e") {
		s += ".0"
	}
	return s
}
