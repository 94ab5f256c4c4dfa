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
}

// at is the place of a byte offset. It counts lines and columns as if the text
// stood in the file exactly as it is here.
func (s source) at(offset int) diag.Pos {
	pos := s.pos
	if pos.Line == 0 {
		return pos
	}
	before := s.text[:min(offset, len(s.text))]
	lines := strings.Count(before, "\n")
	if lines == 0 {
		if pos.Col > 0 {
			pos.Col += utf8.RuneCountInString(before)
		}
		return pos
	}
	pos.Line += lines
	pos.Col = 1 + utf8.RuneCountInString(before[strings.LastIndexByte(before, '\n')+1:])
	return pos
}

func (s source) errorf(offset int, format string, args ...any) *diag.Diagnostic {
	d := diag.Errorf(s.at(offset), diag.BadExpression, format, args...)
	return &d
}
