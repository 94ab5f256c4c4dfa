package jmespath

import (
	"strings"
	"unicode/utf8"

	"github.com/kvap/kvap/diag"
)

// A source is a text with the place of its first character.
type source struct {
	text string
	pos  diag.Pos
	last *mark
}

// A mark is an offset of a text with its place. The places of a text are asked for
// more or less in order: each is counted from the one before.
type mark struct {
	offset int
	pos    diag.Pos
}

func newSource(text string, pos diag.Pos) source { return source{text, pos, &mark{0, pos}} }

// at is the place of a byte offset. It counts lines and columns as if the text
// stood in the file exactly as it is here.
func (s source) at(offset int) diag.Pos {
	if s.pos.Line == 0 {
		return s.pos
	}
	offset = min(offset, len(s.text))
	if offset < s.last.offset {
		*s.last = mark{0, s.pos}
	}
	between, pos := s.text[s.last.offset:offset], s.last.pos
	lines := strings.Count(between, "\n")
	if lines > 0 {
		pos.Line += lines
		pos.Col = 1
		between = between[strings.LastIndexByte(between, '\n')+1:]
	}
	if pos.Col > 0 {
		pos.Col += utf8.RuneCountInString(between)
	}
	*s.last = mark{offset, pos}
	return pos
}

func (s source) errorf(offset int, format string, args ...any) *diag.Diagnostic {
	d := diag.Errorf(s.at(offset), diag.BadExpression, format, args...)
	return &d
}
