package policy

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Marshal writes a tree as YAML, in the order of the source. Read again, it is the
// same tree save for positions.
func Marshal(n *Node) []byte {
	var w yamlWriter
	w.value(n, 0, false)
	return w.out.Bytes()
}

type yamlWriter struct{ out bytes.Buffer }

// value writes n and a line end. inline tells that the line has begun: behind a
// key a map starts on a new line, behind a dash it does not.
func (w *yamlWriter) value(n *Node, indent int, inline bool) {
	switch {
	case n.Kind == Map && len(n.Fields) > 0:
		for i, f := range n.Fields {
			if i > 0 || !inline {
				w.indent(indent)
			}
			w.key(f.Key, indent)
			w.child(f.Value, indent)
		}
	case n.Kind == List && len(n.Items) > 0:
		for i, item := range n.Items {
			if i > 0 || !inline {
				w.indent(indent)
			}
			w.out.WriteString("- ")
			if isBlock(item) {
				w.literal(item.Str, indent)
				continue
			}
			w.value(item, indent+2, true)
		}
	default:
		w.out.WriteString(flow(n))
		w.out.WriteByte('\n')
	}
}

// key writes a key and its colon. YAML looks for the colon within 1024 characters
// unless a question mark announces a key.
func (w *yamlWriter) key(key string, indent int) {
	text := scalarText(key)
	if len(text) > 1000 {
		w.out.WriteString("? " + text + "\n")
		w.indent(indent)
		text = ""
	}
	w.out.WriteString(text + ":")
}

// child writes the value of a key.
func (w *yamlWriter) child(n *Node, indent int) {
	switch {
	case n.Kind == Map && len(n.Fields) > 0:
		w.out.WriteByte('\n')
		w.value(n, indent+2, false)
	case n.Kind == List && len(n.Items) > 0:
		w.out.WriteByte('\n')
		w.value(n, indent, false)
	case isBlock(n):
		w.out.WriteByte(' ')
		w.literal(n.Str, indent)
	default:
		w.out.WriteByte(' ')
		w.value(n, indent, true)
	}
}

func (w *yamlWriter) indent(n int) {
	for range n {
		w.out.WriteByte(' ')
	}
}

// flow is a value that fits on a line.
func flow(n *Node) string {
	switch n.Kind {
	case Bool:
		return strconv.FormatBool(n.Bool)
	case Int:
		return strconv.FormatInt(n.Int, 10)
	case Float:
		text := strconv.FormatFloat(n.Float, 'g', -1, 64)
		return text
	case String:
		return scalarText(n.Str)
	case List:
		return "[]"
	case Map:
		return "{}"
	}
	return "null"
}

// isBlock tells whether a string is written as literal lines: it has several, and
// nothing in them that such a block would lose.
func isBlock(n *Node) bool {
	if n.Kind != String || !strings.Contains(n.Str, "\n") {
		return false
	}
	body := strings.TrimSuffix(n.Str, "\n")
	if body == "" || body[0] == ' ' || body[0] == '\n' || strings.HasSuffix(body, "\n") {
		return false
	}
	for line := range strings.SplitSeq(body, "\n") {
		if strings.HasSuffix(line, " ") || !printable(line) {
			return false
		}
	}
	return true
}

func (w *yamlWriter) literal(text string, indent int) {
	w.out.WriteByte('|')
	if !strings.HasSuffix(text, "\n") {
		w.out.WriteByte('-')
	}
	w.out.WriteByte('\n')
	for line := range strings.SplitSeq(strings.TrimSuffix(text, "\n"), "\n") {
		if line != "" {
			w.indent(indent + 2)
			w.out.WriteString(line)
		}
		w.out.WriteByte('\n')
	}
}

// scalarText is a string on one line, in quotes unless every YAML reader takes it
// for the same string without.
func scalarText(s string) string {
	if isPlain(s) {
		return s
	}
	if printable(s) && !strings.Contains(s, "'") {
		return "'" + s + "'"
	}
	return doubleQuoted(s)
}

func isPlain(s string) bool {
	if s == "" || !printable(s) || strings.TrimSpace(s) != s || strings.HasPrefix(s, "---") || strings.HasPrefix(s, "...") {
		return false
	}
	if strings.IndexByte("-?:,[]{}#&*!|>'\"%@`=<", s[0]) >= 0 || strings.Contains(s, ": ") || strings.Contains(s, " #") || strings.HasSuffix(s, ":") {
		return false
	}
	var n Node
	resolve(&n, s)
	return n.Kind == String && !isTimestamp(s) && !oddNumber(s)
}

// oddNumber is text that some reader of YAML takes for a number, such as 1:30.
func oddNumber(s string) bool {
	return strings.ContainsAny(s, "0123456789") && strings.Trim(s, "+-0123456789.:_exXobafABCDEF") == ""
}

// printable tells that a text has no control characters and nothing else that
// YAML breaks a line at or forbids.
func printable(s string) bool {
	for _, r := range s {
		switch {
		case r < ' ' || r == 0x7f || 0x80 <= r && r < 0xa0:
			return false
		case r == 0x2028 || r == 0x2029 || r == 0xfeff || r == utf8.RuneError:
			return false
		case 0xd800 <= r && r < 0xe000 || r == 0xfffe || r == 0xffff:
			return false
		}
	}
	return true
}

// doubleQuoted is a JSON string, which is YAML too; JSON leaves alone what YAML
// does not print.
func doubleQuoted(s string) string {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(s); err != nil {
		panic(err) // a string always has a form in JSON
	}
	text := strings.TrimSuffix(buf.String(), "\n")
	var out strings.Builder
	for _, r := range text {
		if r < 0x80 && r != 0x7f || r != utf8.RuneError && printable(string(r)) {
			out.WriteRune(r)
			continue
		}
		out.WriteString(`\u` + strconv.FormatInt(0x10000+int64(r), 16)[1:])
	}
	return out.String()
}
