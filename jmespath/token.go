package jmespath

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/kvap/kvap/diag"
)

// maxTokens bounds an expression, and with it the depth of every recursion over
// its text and tree.
const maxTokens = 10_000

type tokenKind int

const (
	punctuation tokenKind = iota // stands for itself
	number
	name    // value string
	quoted  // value string, or template
	literal // value any
	raw     // value string, or template
	current
)

type token struct {
	kind     tokenKind
	offset   int
	text     string
	value    any
	template *Template
}

// A hole is an inner variable or reference: lexed as one opaque character.
type hole struct {
	start, end int
	part       Part
}

// A lexer splits src.text[at:end] into tokens, as go-jmespath 0.4 does. Holes
// may stand in raw strings and quoted names; a hole elsewhere makes open true.
type lexer struct {
	src   sourceText
	at    int
	end   int
	holes []hole // in order
	open  bool
	// filled allows of a literal that is one hole: the value of a variable.
	filled bool
	tokens []token
}

func (l *lexer) lex() *diag.Diagnostic {
	for l.at < l.end {
		if h := l.hole(l.at); h != nil {
			l.open = true
			l.at = h.end
			continue
		}
		if len(l.tokens) == maxTokens {
			return l.src.errorf(l.at, "the expression has more than %d tokens; split it with context variables", maxTokens)
		}
		if err := l.token(); err != nil {
			return err
		}
	}
	return nil
}

func (l *lexer) hole(offset int) *hole {
	i, found := slices.BinarySearchFunc(l.holes, offset, func(h hole, at int) int { return h.start - at })
	if !found {
		return nil
	}
	return &l.holes[i]
}

func (l *lexer) add(kind tokenKind, end int, value any) {
	l.tokens = append(l.tokens, token{kind: kind, offset: l.at, text: l.src.text[l.at:end], value: value})
	l.at = end
}

func (l *lexer) token() *diag.Diagnostic {
	rest := l.src.text[l.at:l.end]
	switch c := rest[0]; {
	case c == ' ' || c == '\t' || c == '\n' || c == '\r':
		l.at++
	case isNameStart(c):
		n := 1
		for n < len(rest) && (isNameStart(rest[n]) || isDigit(rest[n])) {
			n++
		}
		l.add(name, l.at+n, rest[:n])
	case isDigit(c) || c == '-' && len(rest) > 1 && isDigit(rest[1]):
		return l.number(rest)
	case c == '"':
		return l.quotedName()
	case c == '\'':
		return l.rawString()
	case c == '`':
		return l.literal()
	case c == '@':
		l.add(current, l.at+1, nil)
	default:
		return l.punctuation(rest)
	}
	return nil
}

func (l *lexer) punctuation(rest string) *diag.Diagnostic {
	for _, p := range []string{"[?", "[]", "||", "&&", "==", "!=", "<=", ">="} {
		if strings.HasPrefix(rest, p) {
			l.add(punctuation, l.at+2, nil)
			return nil
		}
	}
	if strings.IndexByte(".*,:{}[]()|&!<>", rest[0]) >= 0 {
		l.add(punctuation, l.at+1, nil)
		return nil
	}
	r, _ := utf8.DecodeRuneInString(rest)
	switch {
	case strings.ContainsRune("+-/%\u2212\u00d7\u00f7", r):
		return l.src.errorf(l.at, "unexpected %q: there are no arithmetic operators; use add(), subtract(), multiply(), divide() or modulo(), and double quotes around a name that is no plain word", r)
	case r == '$':
		return l.src.errorf(l.at, "unexpected '$': there are no $ variables and no root node")
	case r == '=':
		return l.src.errorf(l.at, "unexpected '=': equality is ==")
	}
	return l.src.errorf(l.at, "unexpected %q", r)
}

func (l *lexer) number(rest string) *diag.Diagnostic {
	n := 1
	for n < len(rest) && isDigit(rest[n]) {
		n++
	}
	i, err := strconv.Atoi(rest[:n])
	if err != nil {
		return l.src.errorf(l.at, "%s is too large for an index", rest[:n])
	}
	l.add(number, l.at+n, i)
	return nil
}

// quotedName reads "...": a JSON string.
func (l *lexer) quotedName() *diag.Diagnostic {
	close, holed, err := l.delimited('"')
	if err != nil {
		return err
	}
	t, err := l.pieces(close, holed, func(piece string, offset int) (string, *diag.Diagnostic) {
		var s string
		if json.Unmarshal([]byte(`"`+piece+`"`), &s) != nil {
			return "", l.src.errorf(offset, "a name in double quotes must be a JSON string: %q is none", piece)
		}
		return s, nil
	})
	if err != nil {
		return err
	}
	l.addText(quoted, close+1, t)
	return nil
}

// rawString reads '...'. Only \' is an escape: the community library also
// unescapes \\, which go-jmespath 0.4 does not.
func (l *lexer) rawString() *diag.Diagnostic {
	close, holed, err := l.rawEnd()
	if err != nil {
		return err
	}
	t, err := l.pieces(close, holed, func(piece string, _ int) (string, *diag.Diagnostic) {
		return strings.ReplaceAll(piece, `\'`, `'`), nil
	})
	if err != nil {
		return err
	}
	l.addText(raw, close+1, t)
	return nil
}

// literal reads `...`: a JSON value, in which \` stands for `.
func (l *lexer) literal() *diag.Diagnostic {
	close, holed, err := l.delimited('`')
	if err != nil {
		return err
	}
	if h := l.hole(l.at + 1); l.filled && h != nil && h.end == close && h.part.Var != nil {
		l.add(literal, close+1, nil)
		l.tokens[len(l.tokens)-1].template = &Template{Pos: l.src.at(h.start), Text: l.src.text[h.start:h.end], Parts: []Part{h.part}}
		return nil
	}
	if holed {
		l.open = true
		l.add(literal, close+1, nil)
		return nil
	}
	var value any
	text := strings.ReplaceAll(l.src.text[l.at+1:close], "\\`", "`")
	if json.Unmarshal([]byte(text), &value) != nil {
		return l.src.errorf(l.at, "a literal in backquotes must be JSON: %q is none; write a string as '...'", text)
	}
	l.add(literal, close+1, value)
	return nil
}

// delimited finds the closing delimiter of what starts at l.at, where a
// backslash protects the next character. holed tells whether holes lie between.
func (l *lexer) delimited(delimiter byte) (close int, holed bool, err *diag.Diagnostic) {
	for i := l.at + 1; i < l.end; i++ {
		if h := l.hole(i); h != nil {
			holed = true
			i = h.end - 1
			continue
		}
		switch l.src.text[i] {
		case delimiter:
			return i, holed, nil
		case '\\':
			i++
		}
	}
	return 0, false, l.unclosed(delimiter)
}

// rawEnd is delimited for raw strings, where a backslash protects nothing but a
// quote.
func (l *lexer) rawEnd() (close int, holed bool, err *diag.Diagnostic) {
	for i := l.at + 1; i < l.end; i++ {
		if h := l.hole(i); h != nil {
			holed = true
			i = h.end - 1
			continue
		}
		switch {
		case l.src.text[i] == '\'':
			return i, holed, nil
		case l.src.text[i] == '\\' && i+1 < l.end && l.src.text[i+1] == '\'':
			i++
		}
	}
	return 0, false, l.unclosed('\'')
}

func (l *lexer) unclosed(delimiter byte) *diag.Diagnostic {
	return l.src.errorf(l.at, "%c has no closing %c", delimiter, delimiter)
}

// pieces splits the inside of a quoted token at its holes, unquoting the text
// between.
func (l *lexer) pieces(close int, holed bool, unquote func(string, int) (string, *diag.Diagnostic)) (*Template, *diag.Diagnostic) {
	open := l.at + 1
	t := &Template{Pos: l.src.at(open), Text: l.src.text[open:close]}
	from := open
	if holed {
		first, _ := slices.BinarySearchFunc(l.holes, open, func(h hole, at int) int { return h.start - at })
		for _, h := range l.holes[first:] {
			if h.start >= close {
				break
			}
			if err := t.addText(l.src.text[from:h.start], from, unquote); err != nil {
				return nil, err
			}
			t.Parts = append(t.Parts, h.part)
			from = h.end
		}
	}
	return t, t.addText(l.src.text[from:close], from, unquote)
}

func (t *Template) addText(piece string, offset int, unquote func(string, int) (string, *diag.Diagnostic)) *diag.Diagnostic {
	if piece == "" {
		return nil
	}
	s, err := unquote(piece, offset)
	if err == nil {
		t.Parts = append(t.Parts, Part{Text: s})
	}
	return err
}

// addText adds a quoted token: its value if it is constant, else its template.
func (l *lexer) addText(kind tokenKind, end int, t *Template) {
	s, constant := t.Constant()
	if constant {
		l.add(kind, end, s)
		return
	}
	l.add(kind, end, nil)
	l.tokens[len(l.tokens)-1].template = t
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

func isNameStart(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || c == '_'
}
