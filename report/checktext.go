package report

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/kvap/kvap/diag"
)

// A CheckText says what people see of a check.
type CheckText struct {
	Text diag.Text
	// Detail is the least severity that is shown.
	Detail diag.Severity
	// Cost shows what each expression costs.
	Cost bool
}

// WriteText writes each finding with its place, a table of the releases where there
// are several, and the totals.
func (c Check) WriteText(w io.Writer, t CheckText) error {
	for _, o := range c.Objects {
		for _, g := range o.grouped() {
			if g.Severity > t.Detail {
				continue
			}
			if err := o.writeFinding(w, t.Text, g); err != nil {
				return err
			}
		}
	}
	if t.Cost {
		if err := c.writeCost(w); err != nil {
			return err
		}
	}
	if rows := c.byRelease(); len(rows) > 2 {
		return writeTable(w, rows, c.Totals.String())
	}
	_, err := io.WriteString(w, c.Totals.String()+"\n")
	return err
}

// A groupedFinding is the same finding in several releases.
type groupedFinding struct {
	Finding
	releases []string
}

func (o CheckedObject) grouped() []groupedFinding {
	var out []groupedFinding
	for _, f := range o.Findings {
		release := f.Release
		f.Release = ""
		i := slices.IndexFunc(out, func(g groupedFinding) bool { return g.Finding == f })
		if i < 0 {
			i = len(out)
			out = append(out, groupedFinding{Finding: f})
		}
		if release != "" {
			out[i].releases = append(out[i].releases, release)
		}
	}
	return out
}

// writeFinding writes a finding and, of a generated object, the expression that it is
// in, which the source does not show.
func (o CheckedObject) writeFinding(w io.Writer, text diag.Text, g groupedFinding) error {
	d := diag.Diagnostic{Code: g.Code, Severity: g.Severity, Pos: g.Pos(), Message: g.Message}
	if err := text.Write(w, diag.List{d}); err != nil {
		return err
	}
	of := o.Name
	if g.Field != "" {
		of += " " + g.Field
	}
	if len(g.releases) > 0 && len(o.Releases) > 1 {
		of += " in " + strings.Join(g.releases, ", ")
	}
	lines := []string{of}
	if o.Generated && g.Expression != "" {
		lines = append(lines, excerptOf(g.Finding)...)
	}
	for _, line := range lines {
		if _, err := fmt.Fprintf(w, "      = %s\n", inLine(line)); err != nil {
			return err
		}
	}
	return nil
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

func (c Check) writeCost(w io.Writer) error {
	rows := [][]string{{"OBJECT", "FIELD", "ESTIMATE", "MEASURED", "LIMIT", "SAFE UP TO"}}
	for _, o := range c.Objects {
		for _, k := range o.Cost {
			rows = append(rows, []string{o.Name, k.Field, strconv.FormatInt(k.Estimate, 10), strconv.FormatInt(k.Measured, 10), strconv.FormatInt(k.Limit, 10), orDash(k.Safe)})
		}
	}
	return writeTable(w, rows, "")
}

// byRelease is a row of totals for each release.
func (c Check) byRelease() [][]string {
	rows := [][]string{{"RELEASE", "OBJECTS", "ERRORS", "WARNINGS", "NOTES", "CODES"}}
	var releases []string
	for _, o := range c.Objects {
		for _, r := range o.Releases {
			if !slices.Contains(releases, r) {
				releases = append(releases, r)
			}
		}
	}
	slices.SortFunc(releases, byVersion)
	for _, r := range releases {
		rows = append(rows, c.releaseRow(r))
	}
	return rows
}

func (c Check) releaseRow(release string) []string {
	var t CheckTotals
	var found []diag.Code
	for _, o := range c.Objects {
		if !slices.Contains(o.Releases, release) {
			continue
		}
		t.Objects++
		for _, f := range o.Findings {
			if f.Release != "" && f.Release != release {
				continue
			}
			t.count(f.Severity)
			if !slices.Contains(found, f.Code) {
				found = append(found, f.Code)
			}
		}
	}
	slices.Sort(found)
	return []string{release, strconv.Itoa(t.Objects), strconv.Itoa(t.Errors), strconv.Itoa(t.Warnings), strconv.Itoa(t.Notes), codeTexts(found)}
}

// byVersion orders 1.9 before 1.30.
func byVersion(a, b string) int {
	if len(a) != len(b) {
		return len(a) - len(b)
	}
	return strings.Compare(a, b)
}
