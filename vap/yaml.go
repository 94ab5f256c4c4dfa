package vap

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Marshal writes objects as kubectl apply takes them: one YAML document each, in
// the order of the API's fields, without status, with expressions of several
// lines as literal blocks. Objects may be of any type that marshals to a JSON object.
func Marshal(objects ...any) ([]byte, error) {
	var out bytes.Buffer
	for i, o := range objects {
		if i > 0 {
			out.WriteString("---\n")
		}
		d, err := documentOf(o)
		if err != nil {
			return nil, err
		}
		d.fields(&out, "")
	}
	return out.Bytes(), nil
}

// MarshalJSON writes objects as a v1 List, in the order of Marshal.
func MarshalJSON(objects ...any) ([]byte, error) {
	list := struct {
		APIVersion string            `json:"apiVersion"`
		Kind       string            `json:"kind"`
		Items      []json.RawMessage `json:"items"`
	}{"v1", "List", []json.RawMessage{}}
	for _, o := range objects {
		d, err := documentOf(o)
		if err != nil {
			return nil, err
		}
		var item bytes.Buffer
		if err := d.json(&item); err != nil {
			return nil, err
		}
		list.Items = append(list.Items, item.Bytes())
	}
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(list); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

// All are the policy and its bindings as Marshal takes them.
func (o Objects) All() []any {
	var out []any
	if o.Policy != nil {
		out = append(out, o.Policy)
	}
	for _, b := range o.Bindings {
		out = append(out, b)
	}
	return out
}

// fields writes an object's fields at an indent, the first one without: the
// caller has written it, or a list's dash.
func (d *orderedObject) fields(w *bytes.Buffer, indent string) {
	for i, key := range d.keys {
		if i > 0 {
			w.WriteString(indent)
		}
		w.WriteString(scalar(key))
		w.WriteByte(':')
		d.values[i].value(w, indent)
	}
}

// value writes what stands behind a key at that indent, with its line break.
func (d *orderedObject) value(w *bytes.Buffer, indent string) {
	switch {
	case d.kind == '{' && len(d.values) > 0:
		w.WriteString("\n" + indent + "  ")
		d.fields(w, indent+"  ")
	case d.kind == '[' && len(d.values) > 0:
		if line, ok := d.line(); ok && len(indent)+len(line) <= listWidth {
			w.WriteString(" " + line + "\n")
			return
		}
		w.WriteByte('\n')
		for _, v := range d.values {
			w.WriteString(indent + "-")
			v.element(w, indent)
		}
	default:
		w.WriteByte(' ')
		d.leaf(w, indent+"  ")
	}
}

// element writes what stands behind the dash of a list at that indent.
func (d *orderedObject) element(w *bytes.Buffer, indent string) {
	switch {
	case len(d.values) == 0:
		w.WriteByte(' ')
		d.leaf(w, indent+"  ")
	case d.kind == '{':
		w.WriteByte(' ')
		d.fields(w, indent+"  ")
	default:
		d.value(w, indent+"  ")
	}
}

// listWidth is how long a list on one line is at most.
const listWidth = 100

// line is a list of texts as people write short ones, as [CREATE, UPDATE].
func (d *orderedObject) line() (text string, ok bool) {
	var texts []string
	for _, v := range d.values {
		if v.kind != 's' || block(v.text) {
			return "", false
		}
		if strings.ContainsAny(v.text, ",[]{}") { // which end a plain text in such a list
			texts = append(texts, quoted(v.text))
		} else {
			texts = append(texts, scalar(v.text))
		}
	}
	return "[" + strings.Join(texts, ", ") + "]", true
}

func (d *orderedObject) leaf(w *bytes.Buffer, indent string) {
	switch d.kind {
	case '{':
		w.WriteString("{}")
	case '[':
		w.WriteString("[]")
	case 's':
		if block(d.text) {
			writeBlock(w, d.text, indent)
			return
		}
		w.WriteString(scalar(d.text))
	default:
		w.WriteString(d.text)
	}
	w.WriteByte('\n')
}

// block tells that s reads best as a literal block, and can be one: it has
// several lines, or characters that a quoted scalar would have to escape.
func block(s string) bool {
	if s == "" || strings.HasPrefix(s, " ") || strings.Trim(s, "\n") == "" || strings.HasPrefix(s, "\n") {
		return false
	}
	for _, r := range s {
		if r != '\n' && !unicode.IsPrint(r) {
			return false
		}
	}
	return strings.Contains(s, "\n") || strings.ContainsAny(s, `"\`) && !plain(s)
}

func writeBlock(w *bytes.Buffer, s, indent string) {
	switch {
	case strings.HasSuffix(s, "\n\n"):
		w.WriteString("|+\n")
	case strings.HasSuffix(s, "\n"):
		w.WriteString("|\n")
	default:
		w.WriteString("|-\n")
	}
	for line := range strings.SplitSeq(strings.TrimSuffix(s, "\n"), "\n") {
		if line != "" {
			w.WriteString(indent + line)
		}
		w.WriteByte('\n')
	}
}

// scalar is s on one line, plain where every reader takes that for the string s.
func scalar(s string) string {
	if plain(s) {
		return s
	}
	return quoted(s)
}

func quoted(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\t':
			b.WriteString(`\t`)
		case unicode.IsPrint(r):
			b.WriteRune(r)
		case r <= 0xff:
			fmt.Fprintf(&b, `\x%02x`, r)
		case r <= 0xffff:
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			fmt.Fprintf(&b, `\U%08x`, r)
		}
	}
	b.WriteByte('"')
	return b.String()
}

// plain is on the safe side: what does not begin with a letter, or one of a few
// other characters, may be a number, a date or syntax to one reader or another.
func plain(s string) bool {
	first, _ := utf8.DecodeRuneInString(s)
	if !unicode.IsLetter(first) && !strings.ContainsRune("_/(", first) {
		return false
	}
	switch strings.ToLower(s) {
	case "y", "n", "yes", "no", "on", "off", "true", "false", "null":
		return false
	}
	for _, r := range s {
		if !unicode.IsPrint(r) {
			return false
		}
	}
	return !strings.Contains(s, ": ") && !strings.Contains(s, " #") && !strings.HasSuffix(s, ":") && !strings.HasSuffix(s, " ")
}
