package diag

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// A Pos is a place in a source: a field path always, and file, line and column
// when the source was a file.
type Pos struct {
	File string `json:"file,omitempty"`
	Line int    `json:"line,omitempty"` // from 1; 0 when unknown
	Col  int    `json:"column,omitempty"`
	Path string `json:"path,omitempty"` // for instance spec.rules[0].validate.pattern
}

// String is file:line:col, as far as known, else the field path.
func (p Pos) String() string {
	var parts []string
	if p.File != "" {
		parts = append(parts, p.File)
	}
	if p.Line > 0 {
		parts = append(parts, strconv.Itoa(p.Line))
		if p.Col > 0 {
			parts = append(parts, strconv.Itoa(p.Col))
		}
	}
	if len(parts) == 0 {
		return p.Path
	}
	return strings.Join(parts, ":")
}

// Compare orders positions by file, line, column and path.
func (p Pos) Compare(q Pos) int {
	return cmp.Or(
		cmp.Compare(p.File, q.File),
		cmp.Compare(p.Line, q.Line),
		cmp.Compare(p.Col, q.Col),
		cmp.Compare(p.Path, q.Path),
	)
}

// A Severity says how much a diagnostic matters.
type Severity int

// The severities, the gravest first.
const (
	Error   Severity = iota // the input is wrong, and a part of it was left out
	Warning                 // the user must know
	Note                    // for information
)

// String is the lower-case word, as it stands in JSON.
func (s Severity) String() string {
	return [...]string{"error", "warning", "note"}[s]
}

// MarshalText makes a Severity its word in JSON.
func (s Severity) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// A Code is the stable number of a diagnostic; codes.go lists them.
type Code int

// String is the code as users see it, for instance KV201.
func (c Code) String() string { return fmt.Sprintf("KV%03d", int(c)) }

// MarshalText makes a Code its text in JSON.
func (c Code) MarshalText() ([]byte, error) { return []byte(c.String()), nil }

// UnmarshalText reads a code as users write it.
func (c *Code) UnmarshalText(text []byte) error {
	code, ok := ParseCode(string(text))
	if !ok {
		return fmt.Errorf("there is no code %q", text)
	}
	*c = code
	return nil
}

// A Diagnostic is one thing to tell the user: a place, a code that never
// changes, and a message that names the next step where there is one.
type Diagnostic struct {
	Code     Code     `json:"code"`
	Severity Severity `json:"severity"`
	Pos
	Message string `json:"message"`
}

// Error makes a Diagnostic an error, so that a parser can return one.
func (d Diagnostic) Error() string {
	return fmt.Sprintf("%s: %s [%s]", d.Pos, d.Message, d.Code)
}

// Errorf builds a Diagnostic of severity Error.
func Errorf(pos Pos, code Code, format string, args ...any) Diagnostic {
	return Diagnostic{Code: code, Severity: Error, Pos: pos, Message: fmt.Sprintf(format, args...)}
}

// Warnf builds a Diagnostic of severity Warning.
func Warnf(pos Pos, code Code, format string, args ...any) Diagnostic {
	return Diagnostic{Code: code, Severity: Warning, Pos: pos, Message: fmt.Sprintf(format, args...)}
}

// Notef builds a Diagnostic of severity Note.
func Notef(pos Pos, code Code, format string, args ...any) Diagnostic {
	return Diagnostic{Code: code, Severity: Note, Pos: pos, Message: fmt.Sprintf(format, args...)}
}

// A List is any number of diagnostics; Sort gives it its stable order.
type List []Diagnostic

// Sort orders the list by position, then code, then message, and drops
// repetitions, of which the gravest stays.
func (l List) Sort() List {
	slices.SortStableFunc(l, func(a, b Diagnostic) int {
		return cmp.Or(a.Pos.Compare(b.Pos), cmp.Compare(a.Code, b.Code), cmp.Compare(a.Message, b.Message), cmp.Compare(a.Severity, b.Severity))
	})
	return slices.CompactFunc(l, func(a, b Diagnostic) bool { return a.Pos == b.Pos && a.Code == b.Code && a.Message == b.Message })
}

// HasErrors tells whether any diagnostic is an Error.
func (l List) HasErrors() bool { return l.Err() != nil }

// Err is the first Error; nil where there is none.
func (l List) Err() error {
	if i := slices.IndexFunc(l, func(d Diagnostic) bool { return d.Severity == Error }); i >= 0 {
		return l[i]
	}
	return nil
}
