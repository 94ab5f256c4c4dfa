package jmespath

import (
	"cmp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/kvap/kvap/diag"
)

// maxNesting bounds how deep variables stand in variables.
const maxNesting = 32

// ParseTemplate splits a string of a policy at its {{ }} variables and $( )
// references. pos is the place of its first character.
//
// Variables are found as Kyverno finds them, from the inside out; but what a
// variable gives is never searched for further ones.
func ParseTemplate(text string, pos diag.Pos) (*Template, *diag.Diagnostic) {
	if !utf8.ValidString(text) {
		return nil, newSource("", pos).errorf(0, "the text is no valid UTF-8")
	}
	src := newSource(text, pos)
	spans, err := src.spans()
	if err != nil {
		return nil, err
	}
	t := &Template{Pos: pos, Text: text}
	at := 0
	for _, s := range spans {
		t.addPlain(text[at:s.start])
		part, err := src.part(s)
		if err != nil {
			return nil, err
		}
		t.Parts = append(t.Parts, part)
		at = s.end
	}
	t.addPlain(text[at:])
	return t, nil
}

// addPlain adds text outside of variables, where \{{ and \$( are escapes.
func (t *Template) addPlain(text string) {
	if text == "" {
		return
	}
	text = strings.ReplaceAll(text, `\{{`, `{{`)
	t.Parts = append(t.Parts, Part{Text: unescapeReferences(text)})
}

// Constant is the text of a template without variables and references.
func (t *Template) Constant() (string, bool) {
	if len(t.Parts) == 0 {
		return "", true
	}
	if len(t.Parts) > 1 || t.Parts[0].Var != nil || t.Parts[0].Ref != nil {
		return "", false
	}
	return t.Parts[0].Text, true
}

// Single is the variable that is the whole string, whose value keeps its type;
// nil when there is more or less than one variable.
func (t *Template) Single() *Variable {
	if len(t.Parts) != 1 {
		return nil
	}
	return t.Parts[0].Var
}

// HasVars tells whether the template has any variable.
func (t *Template) HasVars() bool {
	return slices.ContainsFunc(t.Parts, func(p Part) bool { return p.Var != nil })
}

// HasRefs tells whether the template has any reference, also inside a variable.
func (t *Template) HasRefs() bool {
	return slices.ContainsFunc(t.Parts, func(p Part) bool {
		return p.Ref != nil || p.Var != nil && p.Var.hasRefs()
	})
}

func (v *Variable) hasRefs() bool {
	if v.Body != nil {
		return v.Body.HasRefs()
	}
	found := false
	Walk(v.Expr, func(e *Expr) bool {
		found = found || e.Text != nil && e.Text.HasRefs() || e.Dynamic != nil && e.Dynamic.HasRefs()
		return !found
	})
	return found
}

// A span is a variable or reference in the text, with those inside it.
type span struct {
	start, end int
	reference  bool
	inner      []span
}

// spans finds the outermost variables and references. References come first, as
// they are resolved before variables. Then each pass finds the variables that
// hold no further braces; masking what was found lets the next pass find those
// around it.
func (s sourceText) spans() ([]span, *diag.Diagnostic) {
	masked := []byte(s.text)
	var found []span
	for _, r := range references(s.text) {
		found = append(found, r)
		mask(masked, r)
	}
	for depth := 0; ; depth++ {
		next := variables(masked)
		if len(next) == 0 {
			return found, nil
		}
		if depth == maxNesting {
			return nil, s.errorf(next[0].start, "variables nest deeper than %d levels", maxNesting)
		}
		found = adopt(found, next)
	}
}

func mask(text []byte, s span) {
	for i := s.start; i < s.end; i++ {
		text[i] = 'x'
	}
}

// variables finds and masks the variables without inner braces, except single
// {...} groups.
func variables(masked []byte) []span {
	var found []span
	for i := 0; i+1 < len(masked); i++ {
		if masked[i] != '{' || masked[i+1] != '{' || i > 0 && masked[i-1] == '\\' {
			continue
		}
		if end := variableEnd(masked, i+2); end > 0 {
			s := span{start: i, end: end}
			found = append(found, s)
			mask(masked, s)
			i = end - 1
		}
	}
	return found
}

// variableEnd is where the variable ends whose body starts at i; 0 if it is none.
func variableEnd(masked []byte, i int) int {
	for ; i < len(masked); i++ {
		switch masked[i] {
		case '}':
			if i+1 < len(masked) && masked[i+1] == '}' {
				return i + 2
			}
			return 0
		case '{':
			n := slices.IndexFunc(masked[i+1:], func(c byte) bool { return c == '{' || c == '}' })
			if n < 0 || masked[i+1+n] == '{' {
				return 0
			}
			i += 1 + n
		}
	}
	return 0
}

// adopt merges two ordered lists of spans: those of found that lie in one of
// next become its inner ones.
func adopt(found, next []span) []span {
	merged := make([]span, 0, len(found)+len(next))
	for _, n := range next {
		for len(found) > 0 && found[0].start < n.start {
			merged = append(merged, found[0])
			found = found[1:]
		}
		for len(found) > 0 && found[0].start < n.end {
			n.inner = append(n.inner, found[0])
			found = found[1:]
		}
		merged = append(merged, n)
	}
	merged = append(merged, found...)
	slices.SortFunc(merged, func(a, b span) int { return cmp.Compare(a.start, b.start) })
	return merged
}

func (s sourceText) part(p span) (Part, *diag.Diagnostic) {
	if p.reference {
		return Part{Ref: s.reference(p)}, nil
	}
	v, err := s.variable(p)
	return Part{Var: v}, err
}

func (s sourceText) variable(p span) (*Variable, *diag.Diagnostic) {
	start, end := p.start+2, p.end-2
	v := &Variable{Pos: s.at(p.start)}
	if start < end && s.text[start] == '-' {
		v.Shallow = true
		start++
	}
	body := s.text[start:end]
	v.Raw = strings.TrimSpace(body)
	if v.Raw == "" {
		return nil, s.errorf(p.start, "a variable without an expression")
	}
	start += strings.Index(body, v.Raw)
	l := &lexer{src: s, at: start, end: start + len(v.Raw)}
	for _, inner := range p.inner {
		part, err := s.part(inner)
		if err != nil {
			return nil, err
		}
		l.holes = append(l.holes, hole{inner.start, inner.end, part})
	}
	err := l.lex()
	if l.open {
		// What the text around the holes means is not known before they are filled.
		v.Body = l.body(start)
		return v, nil
	}
	if err == nil {
		v.Expr, err = l.parse()
	}
	if err != nil {
		return nil, err
	}
	return v, nil
}

// ParseField reads an expression that is a whole field of a policy, into which Kyverno fills the
// values of variables as JSON before it parses it: of maps and lists too, in backquotes. It is nil,
// without a diagnostic, where that would decide what the text means.
func ParseField(text string, pos diag.Pos) (*Expr, *diag.Diagnostic) {
	src := newSource(text, pos)
	spans, err := src.spans()
	if err != nil {
		return nil, err
	}
	l := &lexer{src: src, at: len(text) - len(strings.TrimLeft(text, " \t\r\n")), end: len(strings.TrimRight(text, " \t\r\n")), filled: true}
	for _, s := range spans {
		part, err := src.part(s)
		if err != nil {
			return nil, err
		}
		l.holes = append(l.holes, hole{s.start, s.end, part})
	}
	if err := l.lex(); err != nil || l.open {
		return nil, err
	}
	return l.parse()
}

// body is the template of the text from start on.
func (l *lexer) body(start int) *Template {
	t := &Template{Pos: l.src.at(start), Text: l.src.text[start:l.end]}
	at := start
	for _, h := range l.holes {
		if at < h.start {
			t.Parts = append(t.Parts, Part{Text: l.src.text[at:h.start]})
		}
		t.Parts = append(t.Parts, h.part)
		at = h.end
	}
	if at < l.end {
		t.Parts = append(t.Parts, Part{Text: l.src.text[at:l.end]})
	}
	return t
}
