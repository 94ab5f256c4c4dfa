package cel

import (
	"fmt"
	"maps"
	"math"
	"regexp/syntax"
	"slices"
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
	// a raw literal cannot escape a character that a reader could not see
	unseen := strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) })
	if strings.Contains(s, `\`) && !strings.Contains(s, q) && !unseen {
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

// isRegex tells of a literal that can be matched.
func isRegex(n *node) bool {
	if n.op != opString {
		return false
	}
	_, err := syntax.Parse(n.lit.(string), syntax.Perl)
	return err == nil
}

// Data is what JSON holds as a literal of no type. Maps and lists of several types are
// dynamic inside, for CEL wants one type of their values.
func Data(data any) Value { return Func(FuncDyn, literalOf(data)) }

func literalOf(data any) Value {
	switch d := data.(type) {
	case bool:
		return Lit(d).Value
	case int64:
		return Int(d)
	case float64:
		return Double(d)
	case string:
		return String(d)
	case []any:
		items := make([]Value, len(d))
		for i, item := range d {
			items[i] = literalOf(item)
		}
		return List(sameType(items)...)
	case map[string]any:
		keys := slices.Sorted(maps.Keys(d))
		values := make([]Value, len(keys))
		for i, k := range keys {
			values[i] = literalOf(d[k])
		}
		entries := make([]Entry, len(keys))
		for i, v := range sameType(values) {
			entries[i] = Entry{Key: String(keys[i]), Value: v}
		}
		return Map(entries...)
	}
	return Null()
}

// TextEnds are the texts that a sum of texts begins and ends with, where these are literals;
// empty otherwise.
func (v Value) TextEnds() (first, last string) {
	text := func(n *node) string {
		if n.op == opString {
			return n.lit.(string)
		}
		return ""
	}
	if v.n.operator() != Plus {
		return text(v.n), text(v.n)
	}
	begin := v.n
	for begin.operator() == Plus {
		begin = begin.args[0]
	}
	return text(begin), text(v.n.args[1])
}

// sameType is values of one type: texts as they are, anything else dynamic.
func sameType(values []Value) []Value {
	if !slices.ContainsFunc(values, func(v Value) bool { return v.n.op != opString }) {
		return values
	}
	for i, v := range values {
		values[i] = Func(FuncDyn, v)
	}
	return values
}
