package policy

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"github.com/kvap/kvap/diag"
)

const (
	maxFile    = 10 << 20 // bytes; etcd refuses an object of 1.5 MiB
	maxAliased = 100_000  // nodes that aliases may add to a document
	maxDepth   = 1_000    // of nesting, so that recursion over nodes is safe
)

// documents splits a file and makes nodes of its documents. It goes on after a
// document that does not parse, for its neighbours can.
func documents(name string, data []byte) (docs []document, ds diag.List) {
	if d := readable(name, data); d != nil {
		return nil, diag.List{*d}
	}
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	for _, c := range chunks(data) {
		cdocs, cds := c.read(name)
		docs = append(docs, cdocs...)
		ds = append(ds, cds...)
	}
	return docs, ds
}

// A document is a document that parsed, as it stands in its file, with what is wrong
// in it.
type document struct {
	root *Node
	text []byte
	ds   diag.List
}

// readable refuses what is too large or no text.
func readable(name string, data []byte) *diag.Diagnostic {
	pos := diag.Pos{File: name}
	if len(data) > maxFile {
		d := diag.Errorf(pos, diag.Unreadable, "the file is larger than 10 MiB; no policy is that large, split the file")
		return &d
	}
	if utf8.Valid(data) {
		return nil
	}
	pos.Line, pos.Col = 1, 1
	for i := 0; i < len(data); {
		r, size := utf8.DecodeRune(data[i:])
		if r == utf8.RuneError && size <= 1 {
			break
		}
		i += size
		pos.Col++
		if r == '\n' {
			pos.Line++
			pos.Col = 1
		}
	}
	d := diag.Errorf(pos, diag.Unreadable, "the file is no valid UTF-8 here; save it as UTF-8")
	return &d
}

// A chunk is the text between two document markers.
type chunk struct {
	text []byte
	line int // lines of the file before it
}

// chunks splits a file before each line that starts a document and at each that
// ends one. YAML forbids such a line within a scalar, so that no parsing is needed;
// the API machinery does the same.
func chunks(data []byte) []chunk {
	var cs []chunk
	start, startLine, line := 0, 0, 0
	for i := 0; i < len(data); {
		if i > start && isMarker(data[i:], "---") {
			cs = append(cs, chunk{data[start:i], startLine})
			start, startLine = i, line
		}
		end := isMarker(data[i:], "...")
		if end {
			cs = append(cs, chunk{data[start:i], startLine})
		}
		n := bytes.IndexByte(data[i:], '\n')
		if n < 0 {
			n = len(data) - i - 1
		}
		i += n + 1
		line++
		if end {
			start, startLine = i, line
		}
	}
	cs = append(cs, chunk{data[start:], startLine})
	// Directives such as %YAML stand in front of the marker of their document.
	return dropDirectives(cs)
}

func isMarker(line []byte, marker string) bool {
	rest, ok := bytes.CutPrefix(line, []byte(marker))
	return ok && (len(rest) == 0 || strings.IndexByte(" \t\r\n", rest[0]) >= 0)
}

func dropDirectives(cs []chunk) []chunk {
	kept := cs[:0]
	for _, c := range cs {
		if !onlyDirectives(c.text) {
			kept = append(kept, c)
		}
	}
	return kept
}

func onlyDirectives(text []byte) bool {
	if isMarker(text, "---") {
		return false
	}
	for line := range bytes.Lines(text) {
		line = bytes.TrimSpace(line)
		if len(line) > 0 && line[0] != '%' && line[0] != '#' {
			return false
		}
	}
	return true
}

// read makes nodes of a chunk: one document, or several that end in "...".
func (c chunk) read(name string) (docs []document, ds diag.List) {
	if first := bytes.TrimLeft(c.text, " \t\r\n"); len(first) > 0 && first[0] == '{' {
		if docs, ok := c.readJSON(name); ok {
			return docs, nil
		}
	}
	dec := yaml.NewDecoder(bytes.NewReader(c.text))
	for {
		var doc yaml.Node
		err := decode(dec, &doc)
		if errors.Is(err, io.EOF) {
			return docs, ds
		}
		if err != nil {
			return docs, append(ds, c.syntax(name, err))
		}
		v := converter{file: name, line: c.line}
		root := v.convert(&doc, "", 0)
		switch {
		case v.stop:
			ds = append(ds, v.ds...)
		case root != nil && root.Kind != Null:
			docs = append(docs, document{root, c.text, v.ds})
		}
	}
}

// decode keeps a panic of the YAML library, should there be one, from ending the
// run: it is a document that does not parse.
func decode(dec *yaml.Decoder, doc *yaml.Node) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("yaml: %v", r)
		}
	}()
	return dec.Decode(doc)
}

// syntax is the diagnostic for a chunk that is no YAML.
func (c chunk) syntax(name string, err error) diag.Diagnostic {
	if d, ok := c.template(name); ok {
		return d
	}
	line, text := errorLine(err)
	var reason string
	switch {
	case strings.Contains(text, "tab character"), strings.Contains(text, "cannot start any token") && hasTab(lineOf(c.text, line)):
		for hasTab(lineOf(c.text, line+1)) && !hasTab(lineOf(c.text, line)) {
			line++
		}
		reason = "tabs cannot indent; use spaces"
	case strings.HasPrefix(text, "unknown anchor"):
		name := strings.TrimSuffix(strings.TrimPrefix(text, "unknown anchor '"), "' referenced")
		line = 1 + bytes.Count(before(c.text, "*"+name), []byte("\n"))
		reason = "the anchor " + name + " is not known; define it in the same document, before it is used, or put *" + name + " in quotes if a wildcard is meant"
	default:
		reason = plainly(text)
	}
	line = min(line, 1+bytes.Count(bytes.TrimRight(c.text, "\r\n"), []byte("\n")))
	source := lineOf(c.text, line)
	pos := diag.Pos{File: name, Line: c.line + line, Col: 1 + len(source) - len(strings.TrimLeft(source, " \t"))}
	return diag.Errorf(pos, diag.Syntax, "this is no valid YAML: %s", reason)
}

// plainly is what the YAML library says of a document in words for its author, with the next
// step. Of what is not closed, it names the line where that begins.
func plainly(text string) string {
	for _, w := range []struct{ theirs, ours string }{
		{"mapping values are not allowed", "a key cannot stand here; correct the indentation, put a text with a colon in quotes, or add the colon that the line before lacks"},
		{"could not find expected ':'", "the key here lacks its colon; add it, with a space behind"},
		{"did not find expected key", "in the mapping that begins here, a line is indented unlike the others, a colon lacks the space behind it, or quotes or brackets do not match"},
		{"did not find expected '-' indicator", "in the list that begins here, a line is indented unlike the others, or lacks its dash"},
		{"did not find expected ',' or ']'", "a [ that opens here is not closed, or a comma is missing; close it, or add the comma"},
		{"did not find expected ',' or '}'", "a { that opens here is not closed, or a comma is missing; close it, or add the comma"},
		{"found unexpected end of stream", "a quote that opens here is not closed; close it"},
		{"found unexpected document indicator", "a quote that opens here is not closed before the next ---; close it"},
		{"cannot start any token", "a text cannot begin with @, ` or %; put it in quotes"},
		{"found unknown escape character", "in double quotes a backslash begins an escape, and this is none; use single quotes"},
	} {
		if strings.Contains(text, w.theirs) {
			return w.ours
		}
	}
	return text + "; correct this line or the one before"
}

// errorLine is the line that an error of the YAML library names, from 1. It counts
// from 0 where its parser and not its scanner has found the error.
func errorLine(err error) (line int, text string) {
	text = strings.TrimPrefix(err.Error(), "yaml: ")
	rest, ok := strings.CutPrefix(text, "line ")
	if !ok {
		return 1, text
	}
	number, text, _ := strings.Cut(rest, ": ")
	line, err = strconv.Atoi(number)
	if err != nil {
		return 1, rest
	}
	for _, parser := range []string{"key", "node content", "'-' indicator", "',' or", "<document start>"} {
		if strings.HasPrefix(text, "did not find expected "+parser) {
			line++
		}
	}
	return line, text
}

// hasTab tells of a tab in the indentation.
func hasTab(line string) bool {
	return strings.Contains(line[:len(line)-len(strings.TrimLeft(line, " \t"))], "\t")
}

func before(text []byte, word string) []byte {
	head, _, _ := bytes.Cut(text, []byte(word))
	return head
}

func lineOf(text []byte, line int) string {
	for l := range bytes.Lines(text) {
		if line--; line == 0 {
			return strings.TrimRight(string(l), "\r\n")
		}
	}
	return ""
}
