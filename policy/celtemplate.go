package policy

import (
	"strings"

	"github.com/kvap/kvap/diag"
)

// A TemplatePart is a text, or an expression in CEL, of a text of a template:
//
//	((object.metadata.name))-copy   an expression, and the text -copy
//	\((as it stands))               the text ((as it stands))
type TemplatePart struct {
	Text       string
	Expression string // "" for a text
}

// SplitTemplate takes a text of a template apart. It is not ok where an expression does not
// end, or is empty.
func SplitTemplate(text string) (parts []TemplatePart, ok bool) {
	var plain strings.Builder
	for text != "" {
		switch {
		case strings.HasPrefix(text, `\((`):
			plain.WriteString("((")
			text = text[3:]
		case strings.HasPrefix(text, "(("):
			end := closingPair(text)
			if end < 0 || strings.TrimSpace(text[2:end]) == "" {
				return nil, false
			}
			if plain.Len() > 0 {
				parts = append(parts, TemplatePart{Text: plain.String()})
				plain.Reset()
			}
			parts = append(parts, TemplatePart{Expression: strings.TrimSpace(text[2:end])})
			text = text[end+2:]
		default:
			plain.WriteByte(text[0])
			text = text[1:]
		}
	}
	if plain.Len() > 0 {
		parts = append(parts, TemplatePart{Text: plain.String()})
	}
	return parts, true
}

// closingPair is where the )) stands that closes the (( in front of a text; -1 where there
// is none. Parentheses and quotes of the expression belong to it.
func closingPair(text string) int {
	open := 0
	for i := 2; i < len(text); i++ {
		switch text[i] {
		case '\'', '"':
			end := closingQuote(text[i:])
			if end < 0 {
				return -1
			}
			i += end
		case '(':
			open++
		case ')':
			switch {
			case open > 0:
				open--
			case strings.HasPrefix(text[i:], "))"):
				return i
			default:
				return -1
			}
		}
	}
	return -1
}

// closingQuote is where the quote is closed that a text begins with.
func closingQuote(text string) int {
	for i := 1; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case text[0]:
			return i
		}
	}
	return -1
}

// checkTemplate refuses what no template can have: expressions that do not end, and those in
// keys.
func (r *reader) checkTemplate(n *Node) {
	switch n.Kind {
	case String:
		if _, ok := SplitTemplate(n.Str); !ok {
			r.fail(n.Pos, diag.Syntax, `an expression of the template that begins with (( is empty or does not end with )): %q; write \(( for the text`, n.Str)
		}
	case Map:
		for _, f := range n.Fields {
			if strings.Contains(f.Key, "((") {
				r.fail(n.Pos, diag.Syntax, "the key %q of the template has an expression; only values may have one", f.Key)
			}
			r.checkTemplate(f.Value)
		}
	case List:
		for _, item := range n.Items {
			r.checkTemplate(item)
		}
	}
}

// expressions are those in the texts of the entry's template.
func (e *GenerateEntry) expressions(n *Node) (out []string) {
	if n.Kind == String {
		parts, _ := SplitTemplate(n.Str)
		for _, part := range parts {
			if part.Expression != "" {
				out = append(out, part.Expression)
			}
		}
	}
	for _, item := range n.Items {
		out = append(out, e.expressions(item)...)
	}
	for _, f := range n.Fields {
		out = append(out, e.expressions(f.Value)...)
	}
	return out
}

// Expressions are all that an entry evaluates.
func (e *GenerateEntry) Expressions() (out []string) {
	if e.Expression != "" {
		return []string{e.Expression}
	}
	if e.Interpolate {
		for _, doc := range e.Template {
			out = append(out, e.expressions(doc)...)
		}
	}
	return out
}
