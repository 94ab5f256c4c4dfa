package doc

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/kvap/kvap/diag"
)

// A Document is a report without a format.
type Document struct {
	Title string // of a page
	// Totals are what a page has first, and a terminal last.
	Totals   Section
	Shares   []Share // what the HTML page has at its top
	Sections []Section
	Alerts   []Alert // what SARIF and GitHub have
	Suites   Suites  // what JUnit has
	Data     any     // what JSON and YAML have
}

// Media are the formats that have sections.
type Media int

// The media. What is for none of them is for all.
const (
	Terminal Media = 1 << iota
	Markdown
	HTML
	Pages = Markdown | HTML
)

// A Section is a part of a document. Its parts are written in the order in which they stand here;
// a section of which all are empty is left out.
type Section struct {
	In     Media
	Title  string // which a terminal does not have
	Text   string
	Table  [][]string // the first row is the header
	Alerts []Alert
	Items  []Item
	Folds  []Fold // which only HTML has
	// Numbered tells that the items are steps.
	Numbered bool
	// Grouped tells that HTML has the items by their codes.
	Grouped bool
}

// isIn reports whether a medium has the section.
func (s Section) isIn(m Media) bool {
	empty := s.Text == "" && len(s.Table) < 2 && len(s.Alerts)+len(s.Items)+len(s.Folds) == 0
	return !empty && (s.In == 0 || s.In&m != 0)
}

// of are the sections that a medium has.
func (d Document) of(m Media) (out []Section) {
	for _, s := range d.Sections {
		if s.isIn(m) {
			out = append(out, s)
		}
	}
	return out
}

// An Item is something to tell of what is named, with its particulars.
type Item struct {
	Of    []string // from the whole to the part: a policy and a rule
	Tag   string   // a word about it
	Text  string
	Items []Item
	Code  string // no prose: an object, a difference
	// What HTML has besides.
	Place, Class string
	Group        diag.Code
	Bars         []Bar
}

// headed puts before the text what it is about, each name as a format has it.
func (i Item) headed(name, text func(string) string) string {
	var of []string
	for _, n := range i.Of {
		of = append(of, name(n))
	}
	head := strings.Join(of, " / ")
	if i.Tag != "" {
		head += " (" + text(i.Tag) + ")"
	}
	body := text(strings.TrimSpace(i.Text))
	switch {
	case head == "":
		return body
	case body == "":
		return head + ":"
	}
	return head + ": " + body
}

// An Alert is a finding, whatever found it.
type Alert struct {
	Rule     string // a code, or another stable name
	Severity diag.Severity
	Pos      diag.Pos
	Message  string
	// Of is what the alert is about besides its place, so that an alert stays the same
	// when lines move. Short is that for a reader who sees the place.
	Of, Short string
	Releases  string // of Kubernetes that it is for, if not all
	Excerpt   []string
	// Hidden tells that the excerpt is of what the source does not show.
	Hidden bool
	// Accepted is why somebody accepts it; "" for one that counts.
	Accepted string
}

// A Share is how many of all are as they should be, and a bar of what all are.
type Share struct {
	What string // they are
	Bars []Bar  // the first is what is good
	Note string
}

// A Bar is a part of a whole, which is the sum of its parts.
type Bar struct {
	Name, Class string
	Count       int
}

// A Fold is a part of a page that opens by a click: a table, or what rules became.
type Fold struct {
	Title, Note string
	Bars        []Bar
	Table       [][]string
	Pairs       []Pair
}

// A Pair is a rule of the source beside the expressions that enforce it, if any do.
type Pair struct {
	Rule, Target, Codes, Reason string
	File                        string
	Source                      []SourceLine
	Expressions                 []PairedExpression
}

// A SourceLine is a line of a rule. Mark is the number, from 1, that it has in common
// with the expressions that come from it; 0 where none does.
type SourceLine struct {
	Number int
	Text   string
	Mark   int
}

// A PairedExpression is an expression of a native object.
type PairedExpression struct {
	Object, Field, Text string
	Mark                int
}

// A By says what made a report: nothing where it is empty.
type By struct {
	Version string // of kvap
	Command string // as it was typed
	Date    time.Time
}

// Options are a format, and what some formats need.
type Options struct {
	Format string
	By     By
	// Text is how a terminal has diagnostics; its colours are those of tables too.
	Text diag.Text
}

// Write writes the document in a format; text where it is none of the others.
func (d Document) Write(w io.Writer, o Options) error {
	var text string
	switch o.Format {
	case "json":
		return WriteJSON(w, d.Data)
	case "yaml":
		return writeYAML(w, d.Data)
	case "sarif":
		return writeSARIF(w, d.Alerts, o.By)
	case "junit":
		return d.Suites.write(w)
	case "github":
		text = github(d.Alerts)
	case "markdown":
		text = markdown(d)
	case "html":
		text = page(d, o.By)
	default:
		return writeText(w, d, o.Text)
	}
	_, err := io.WriteString(w, text)
	return err
}

// Count is a number with what is counted: 1 file, 2 files.
func Count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}
