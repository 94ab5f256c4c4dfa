package report

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/report/doc"
)

// A CheckView says what people see of a check.
type CheckView struct {
	// Detail is the least severity that a terminal shows.
	Detail diag.Severity
	// Fails is the least severity that is a failure for a build server.
	Fails diag.Severity
	// Cost shows what each expression costs.
	Cost bool
	// Conversion is what made objects, for HTML; nil where there is none.
	Conversion *Conversion
	Pairs      []Pair
}

// Document has the findings, the gravest first, what is dear, a table of the releases where there
// are several, and the totals. A terminal shows accepted findings with the notes.
func (c Check) Document(v CheckView) doc.Document {
	d := doc.Document{Title: "Check", Data: c, Totals: doc.Section{Text: c.Totals.String()}, Suites: c.suites(v.Fails), Shares: []doc.Share{c.share()}}
	shown, pages := doc.Section{In: doc.Terminal}, doc.Section{In: doc.Pages, Title: "Findings", Grouped: true}
	for _, f := range c.found {
		a := c.alert(f)
		d.Alerts = append(d.Alerts, a)
		if f.Severity <= v.Detail && (f.Accepted == "" || v.Detail >= diag.Note) {
			shown.Alerts = append(shown.Alerts, a)
		}
		if f.Accepted == "" {
			pages.Alerts = append(pages.Alerts, a)
		}
	}
	if len(pages.Alerts) == 0 {
		pages.Text = "Nothing was found"
	}
	releases := doc.Section{Title: "By release of Kubernetes"}
	if rows := c.byRelease(); len(rows) > 2 {
		releases.Table = rows
	}
	d.Sections = []doc.Section{shown, pages}
	c.costs(&d, v.Cost)
	d.Sections = append(d.Sections, releases)
	if v.Conversion != nil {
		d.Shares = append([]doc.Share{v.Conversion.Totals.share()}, d.Shares...)
		staying := v.Conversion.staying()
		staying.In = doc.HTML
		d.Sections = append(d.Sections, staying, v.Conversion.became(v.Pairs))
	}
	return d
}

func (c Check) alert(f foundIn) doc.Alert {
	a := doc.Alert{
		Rule: f.Code.String(), Severity: f.Severity, Pos: f.Pos(), Message: f.Message, Of: f.Field, Short: f.Field, Accepted: f.Accepted,
	}
	if f.object == nil {
		a.Short = ""
	} else {
		a.Short = strings.TrimSpace(f.object.Name + " " + f.Field)
		a.Of = f.object.Kind + "/" + f.object.Name + " " + f.Field
		a.Hidden = f.object.Generated
	}
	if len(f.Releases) < len(c.releases) {
		a.Releases = strings.Join(f.Releases, ", ")
	}
	if f.Expression != "" {
		a.Excerpt = excerptOf(f.Finding)
	}
	return a
}

// share are the objects by what is gravest of each; notes do not count.
func (c Check) share() doc.Share {
	var clean, warned, failed int
	for _, o := range c.Objects {
		gravest := diag.Note
		for _, f := range o.Findings {
			if f.Accepted == "" {
				gravest = min(gravest, f.Severity)
			}
		}
		switch gravest {
		case diag.Error:
			failed++
		case diag.Warning:
			warned++
		default:
			clean++
		}
	}
	return doc.Share{What: "objects have no findings", Bars: []doc.Bar{
		{Name: "clean", Class: "good", Count: clean}, {Name: "with warnings", Class: "fair", Count: warned}, {Name: "with errors", Class: "bad", Count: failed},
	}}
}

// suites are one for each object and one for the input, in which a finding at least as grave as a
// severity is a failure, and any other one is skipped. An object without findings passes.
func (c Check) suites(least diag.Severity) doc.Suites {
	out := doc.Suites{Name: "kvap check"}
	for _, o := range c.Objects {
		suite := doc.JUnitSuite{Name: o.Kind + "/" + o.Name, File: o.File}
		if suite.Cases = junitCases(suite.Name, o.Findings, least); len(suite.Cases) == 0 {
			suite.Cases = []doc.JUnitCase{{Class: suite.Name, Name: "no findings", File: o.File, Line: o.Line}}
		}
		out.Suites = append(out.Suites, suite)
	}
	if len(c.Diagnostics) > 0 {
		out.Suites = append(out.Suites, doc.JUnitSuite{Name: "input", Cases: junitCases("input", c.Diagnostics, least)})
	}
	return out
}

func junitCases(class string, list []Finding, least diag.Severity) (out []doc.JUnitCase) {
	for _, f := range list {
		one := doc.JUnitCase{Class: class, Name: strings.TrimSpace(f.Code.String() + " " + f.Field), File: f.File, Line: f.Line}
		switch {
		case f.Accepted != "":
			one.Skipped = &doc.JUnitMessage{Message: "accepted: " + f.Message + " (" + f.Accepted + ")"}
		case f.Severity <= least:
			one.Failure = &doc.JUnitMessage{Message: f.Message, Text: fmt.Sprintf("%s: %s\n%s", f.Pos(), f.Message, f.Expression)}
		default:
			one.Skipped = &doc.JUnitMessage{Message: f.Severity.String() + ": " + f.Message}
		}
		out = append(out, one)
	}
	return out
}

// excerptOf is the line of the expression with a mark, or all of it.
func excerptOf(f Finding) []string {
	lines := strings.Split(strings.TrimRight(f.Expression, "\n"), "\n")
	if f.ExpressionLine == 0 || f.ExpressionLine > len(lines) {
		if len(lines) > 3 {
			return append(slices.Clone(lines[:3]), "…")
		}
		return lines
	}
	return []string{lines[f.ExpressionLine-1], strings.Repeat(" ", max(0, f.ExpressionColumn-1)) + "^"}
}

// byRelease is a row of totals for each release.
func (c Check) byRelease() [][]string {
	rows := [][]string{{"release", "objects", "errors", "warnings", "notes", "codes"}}
	for _, r := range c.releases {
		rows = append(rows, c.releaseRow(r))
	}
	return rows
}

func (c Check) releaseRow(release string) []string {
	var t CheckTotals
	var found []diag.Code
	for _, o := range c.Objects {
		if slices.Contains(o.Releases, release) {
			t.Objects++
		}
	}
	for _, f := range c.found {
		if !slices.Contains(f.Releases, release) {
			continue
		}
		t.count(f.Finding)
		if f.Accepted == "" && !slices.Contains(found, f.Code) {
			found = append(found, f.Code)
		}
	}
	slices.Sort(found)
	return []string{release, strconv.Itoa(t.Objects), strconv.Itoa(t.Errors), strconv.Itoa(t.Warnings), strconv.Itoa(t.Notes), codeTexts(found)}
}
