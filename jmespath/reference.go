package jmespath

import (
	"strings"
	"unicode/utf8"
)

// references finds the $(...): a dollar sign that no backslash precedes, an
// opening parenthesis, one character, and any but spaces up to the last closing
// parenthesis before a space. So $(a)$(b) is one reference, as it is to Kyverno.
func references(text string) []span {
	var found []span
	for i := 0; i+3 < len(text); i++ {
		if text[i] != '$' || text[i+1] != '(' || i > 0 && text[i-1] == '\\' {
			continue
		}
		first, n := utf8.DecodeRuneInString(text[i+2:])
		if first == '\n' {
			continue
		}
		from := i + 2 + n
		word, _, _ := strings.Cut(text[from:], " ")
		if close := strings.LastIndexByte(word, ')'); close >= 0 {
			found = append(found, span{start: i, end: from + close + 1, reference: true})
			i = from + close
		}
	}
	return found
}

func (s sourceText) reference(p span) *Reference {
	r := &Reference{Pos: s.at(p.start), Path: s.text[p.start+2 : p.end-1]}
	for _, op := range []string{"<=", ">=", "<", ">", "!"} {
		if path, ok := strings.CutPrefix(r.Path, op); ok {
			r.Operator, r.Path = op, path
			break
		}
	}
	return r
}

// unescapeReferences turns \$(x) into $(x), where $(x) would be a reference.
func unescapeReferences(text string) string {
	var b strings.Builder
	for {
		i := strings.Index(text, `\$(`)
		if i < 0 {
			b.WriteString(text)
			return b.String()
		}
		b.WriteString(text[:i])
		rest := text[i+1:]
		if found := references(rest); len(found) == 0 || found[0].start != 0 {
			b.WriteByte('\\')
		}
		b.WriteString(rest[:2])
		text = rest[2:]
	}
}
