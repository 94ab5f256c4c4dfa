package jmespath

import (
	"strings"
	"unicode/utf8"

	"github.com/kvap/kvap/diag"
)

// A sourceText is a text with the place of its first character.
type sourceText struct {
	text string
	pos  diag.Pos
	last *counted
}

// counted is an offset of a text with its place. The places of a text are asked for
// more or less in order: each is counted from the one asked for before.
type counted struct {
	offset int
	pos    diag.Pos
}

func newSource(text string, pos diag.Pos) sourceText { return sourceText{text, pos, &counted{0, pos}} }

// at is the place of a byte offset. It counts lines and columns as if the text
// stood in the file exactly as it is here.
func (s sourceText) at(offset int) diag.Pos {
	if s.pos.Line == 0 {
		return s.pos
	}
	offset = min(offset, len(s.text))
	pos := s.last.pos
	between, sign := s.text[min(offset, s.last.offset):max(offset, s.last.offset)], 1
	if offset < s.last.offset {
		sign = -1
	}
	switch lines := strings.Count(between, "\n"); {
	case lines > 0:
		pos.Line += sign * lines
		pos.Col = s.column(offset)
	case pos.Col > 0:
		pos.Col += sign * utf8.RuneCountInString(between)
	}
	*s.last = counted{offset, pos}
	return pos
}

// column is the column of an offset, counted from the start of its line.
func (s sourceText) column(offset int) int {
	start := strings.LastIndexByte(s.text[:offset], '\n') + 1
	column := utf8.RuneCountInString(s.text[start:offset])
	switch {
	case start > 0:
		return 1 + column
	case s.pos.Col > 0:
		return s.pos.Col + column
	}
	return 0
}

func (s sourceText) errorf(offset int, format string, args ...any) *diag.Diagnostic {
	d := diag.Errorf(s.at(offset), diag.BadExpression, format, args...)
	return &d
}
