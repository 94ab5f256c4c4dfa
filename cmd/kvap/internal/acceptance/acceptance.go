package acceptance

import (
	"math"
	"regexp"
	"slices"
	"strings"

	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/internal/input"
	"github.com/kvap/kvap/policy"
)

// Annotation is the annotation of a policy that accepts findings of it.
const Annotation = "kvap.dev/ignore"

// An Acceptance is that somebody accepts findings.
type Acceptance struct {
	Code   diag.Code
	Reason string
	in     func(diag.Pos) bool // nil for everywhere
}

// Everywhere accepts codes wherever they are found.
func Everywhere(codes []diag.Code, reason string) (out []Acceptance) {
	for _, code := range codes {
		out = append(out, Acceptance{Code: code, Reason: reason})
	}
	return out
}

// Reason is why a finding of a code is accepted that is about some places; "" where nobody
// accepts it.
func Reason(list []Acceptance, code diag.Code, at ...diag.Pos) string {
	for _, a := range list {
		if a.Code == code && (a.in == nil || slices.ContainsFunc(at, a.in)) {
			return a.Reason
		}
	}
	return ""
}

// In are what the annotations and comments of sources accept.
func In(sources []input.Source) (out []Acceptance, found diag.List) {
	for _, s := range sources {
		if !strings.Contains(string(s.Data), Annotation) {
			continue
		}
		nodes, _ := policy.Documents(s.Name, s.Data) // what is wrong with the file is told by who reads it
		for i, n := range nodes {
			text := n.Get("metadata").Get("annotations").Get(Annotation)
			if text == nil {
				continue
			}
			last := math.MaxInt
			if i+1 < len(nodes) {
				last = nodes[i+1].Pos.Line - 1
			}
			for _, line := range strings.Split(strings.TrimSpace(text.Str), "\n") {
				out, found = accept(out, found, line, text.Pos, lines{s.Name, n.Pos.Line, last})
			}
		}
		for _, c := range commentsOf(string(s.Data)) {
			out, found = accept(out, found, c.text, diag.Pos{File: s.Name, Line: c.line, Col: c.col}, lines{s.Name, c.from, c.to})
		}
	}
	return out, found
}

// lines are lines of a file.
type lines struct {
	file     string
	from, to int
}

func (l lines) have(at diag.Pos) bool {
	return at.File == l.file && l.from <= at.Line && at.Line <= l.to
}

// accept reads codes and the reason for them, as in
//
//	KV405, KV406: the field is of a fork
func accept(out []Acceptance, found diag.List, text string, at diag.Pos, where lines) ([]Acceptance, diag.List) {
	names, reason, _ := strings.Cut(text, ":")
	var own []Acceptance
	for _, name := range strings.Split(names, ",") {
		code, ok := diag.ParseCode(strings.TrimSpace(name))
		if !ok {
			return out, append(found, diag.Warnf(at, diag.BadIgnore, "%q does not begin with a code; write CODE: REASON, as in KV413: another team writes the binding", text))
		}
		own = append(own, Acceptance{code, strings.TrimSpace(reason), where.have})
	}
	if strings.TrimSpace(reason) == "" {
		return out, append(found, diag.Warnf(at, diag.BadIgnore, "%s is accepted without a reason, and so it is not; write %s: REASON", strings.TrimSpace(names), strings.TrimSpace(names)))
	}
	return append(out, own...), found
}

// A comment is one that accepts findings, and the lines that it is about.
type comment struct {
	text      string
	line, col int
	from, to  int
}

func commentsOf(data string) (out []comment) {
	all := strings.Split(data, "\n")
	marker := regexp.MustCompile(`(^|\s)#\s*` + regexp.QuoteMeta(Annotation) + `:\s*(.*?)\s*$`)
	for i, line := range all {
		m := marker.FindStringSubmatchIndex(line)
		if m == nil {
			continue
		}
		c := comment{text: line[m[4]:m[5]], line: i + 1, col: strings.IndexByte(line[m[0]:], '#') + m[0] + 1}
		c.from, c.to = about(all, i, strings.TrimSpace(line[:m[0]]) == "")
		out = append(out, c)
	}
	return out
}

// about are the lines, from 1, that a comment in a line is about.
func about(all []string, at int, alone bool) (from, to int) {
	begins := at
	if alone {
		_, first := lineBefore(all, at)
		for begins < len(all)-1 && !isContent(all[begins]) && (first || !isMarker(all[begins])) {
			begins++
		}
		if isMarker(all[begins]) { // nothing follows in the document
			return at + 1, begins
		}
		if first { // the whole document
			before, _ := lineBefore(all, begins)
			end := begins
			for end < len(all) && !isMarker(all[end]) {
				end++
			}
			return before + 2, end
		}
	}
	indent, end := indentOf(all[begins]), begins+1
	for end < len(all) && (!isContent(all[end]) && !isMarker(all[end]) || isContent(all[end]) && isBelow(all[begins], all[end], indent)) {
		end++
	}
	return begins + 1, end
}

// lineBefore is the last line before another one that is no comment and not empty; first tells that
// it is none of the same document.
func lineBefore(all []string, at int) (before int, first bool) {
	before = at - 1
	for before >= 0 && !isContent(all[before]) && !isMarker(all[before]) {
		before--
	}
	return before, before < 0 || isMarker(all[before])
}

// isBelow tells that a line belongs to one before it: it is indented more, or an item of
// the list of its key.
func isBelow(head, line string, indent int) bool {
	of := indentOf(line)
	isItem := func(l string) bool { return strings.HasPrefix(strings.TrimSpace(l)+" ", "- ") }
	return of > indent || of == indent && isItem(line) && !isItem(head)
}

func isContent(line string) bool {
	text := strings.TrimSpace(line)
	return text != "" && !strings.HasPrefix(text, "#") && !isMarker(line)
}

// isMarker tells of a line between documents.
func isMarker(line string) bool { return strings.HasPrefix(line, "---") }

func indentOf(line string) int { return len(line) - len(strings.TrimLeft(line, " ")) }
