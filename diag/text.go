package diag

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxExcerpt is how much of a long line is shown, in characters; JSON on one line
// must not fill the screen.
const maxExcerpt = 120

// A Text writes diagnostics for people:
//
//	quota.yaml:17:13: warning: an apiCall has no native form; the webhook will judge this rule [KV201]
//	   17 |             apiCall: {urlPath: /api/v1/quotas}
//	      |             ^ kvap explain KV201
type Text struct {
	// Source is the content of a file, nil when there is none. Without it, or
	// where a place has no line, the first line is all that is written.
	Source func(file string) []byte
	Colour bool
	// Command is how the program is called, kvap when empty.
	Command string
}

// Write writes the list in its order.
func (t Text) Write(w io.Writer, l List) error {
	out := bufio.NewWriter(w)
	s := sources{read: t.Source, lines: map[string][][]byte{}}
	for _, d := range l {
		t.one(out, &s, d)
	}
	return out.Flush()
}

func (t Text) one(out *bufio.Writer, s *sources, d Diagnostic) {
	place := d.Pos.String()
	if place != "" {
		fmt.Fprintf(out, "%s: ", t.paint("1", Inert(place)))
	}
	fmt.Fprintf(out, "%s %s %s\n", t.paint(colour(d.Severity), d.Severity.String()+":"), Inert(d.Message), t.paint(colour(d.Severity), "["+d.Code.String()+"]"))
	line, ok := s.line(d.File, d.Line)
	if !ok {
		return
	}
	text, before := excerpt(line, d.Col)
	command := t.Command
	if command == "" {
		command = "kvap"
	}
	fmt.Fprintf(out, "%5d | %s\n", d.Line, text)
	fmt.Fprintf(out, "      | %s%s\n", before, t.paint(colour(d.Severity), "^")+" "+command+" explain "+d.Code.String())
}

func (t Text) paint(code, text string) string {
	if !t.Colour {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}

func colour(s Severity) string {
	switch s {
	case Error:
		return "31"
	case Warning:
		return "33"
	}
	return "36"
}

// excerpt is what is shown of a line, and what stands below it in front of the
// caret. Tabs stay tabs, so that the caret is below its column at any tab width.
func excerpt(line []byte, col int) (text, before string) {
	runes := []rune(clean(string(line)))
	at := min(max(col-1, 0), len(runes))
	if len(runes) > maxExcerpt {
		start := max(0, at-maxExcerpt/2)
		end := min(len(runes), start+maxExcerpt)
		head, tail := "", ""
		if start > 0 {
			head = "…"
		}
		if end < len(runes) {
			tail = "…"
		}
		at += len([]rune(head)) - start
		runes = []rune(head + string(runes[start:end]) + tail)
	}
	var b strings.Builder
	for _, r := range runes[:at] {
		if r == '\t' {
			b.WriteByte('\t')
			continue
		}
		b.WriteByte(' ')
	}
	return string(runes), b.String()
}

// Inert is a text as a terminal and the log of a build may have it: names are
// anybody's, and must neither steer the one nor command the other. Lines after the
// first are indented.
func Inert(text string) string {
	lines := strings.Split(text, "\n")
	for i := range lines {
		lines[i] = clean(strings.TrimSuffix(lines[i], "\r"))
	}
	return strings.Join(lines, "\n      ")
}

// clean replaces, one for one, what could upset a terminal: what steers it, and what
// makes it show characters in another order than they are in.
func clean(line string) string {
	line = strings.Map(func(r rune) rune {
		switch {
		case r == '\t':
			return r
		case r < ' ', 0x7f <= r && r < 0xa0, 0x202a <= r && r <= 0x202e, 0x2066 <= r && r <= 0x2069, r == utf8.RuneError:
			return utf8.RuneError
		}
		return r
	}, line)
	return uncommanding(line)
}

// uncommanding replaces, one for one, what the log of a build takes for a command: ::
// behind nothing but space, ##[ and ##vso[ anywhere.
func uncommanding(line string) string {
	if begin := strings.TrimLeftFunc(line, unicode.IsSpace); strings.HasPrefix(begin, "::") {
		line = line[:len(line)-len(begin)] + string(utf8.RuneError) + begin[1:]
	}
	line = strings.ReplaceAll(line, "##[", string(utf8.RuneError)+"#[")
	return strings.ReplaceAll(line, "##vso[", string(utf8.RuneError)+"#vso[")
}

// sources are the lines of files, each file read once.
type sources struct {
	read  func(file string) []byte
	lines map[string][][]byte
}

func (s *sources) line(file string, number int) ([]byte, bool) {
	if s.read == nil || number <= 0 {
		return nil, false
	}
	lines, ok := s.lines[file]
	if !ok {
		data := bytes.TrimPrefix(s.read(file), []byte("\ufeff"))
		lines = bytes.Split(data, []byte("\n"))
		s.lines[file] = lines
	}
	if number > len(lines) {
		return nil, false
	}
	return bytes.TrimRight(lines[number-1], "\r"), len(lines) > 1 || len(lines[0]) > 0
}
