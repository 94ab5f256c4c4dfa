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
// are several, and the totals. Accepted findings are shown with the notes.
func (c Check) WriteText(w io.Writer, t CheckText) error {
	for _, f := range c.found {
		if f.Severity > t.Detail || f.Accepted != "" && t.Detail < diag.Note {
			continue
		}
		if err := c.writeFinding(w, t.Text, f); err != nil {
			return err
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

// writeFinding writes a finding and, of a generated object, the expression that it is
// in, which the source does not show.
func (c Check) writeFinding(w io.Writer, text diag.Text, f foundIn) error {
	d := diag.Diagnostic{Code: f.Code, Severity: f.Severity, Pos: f.Pos(), Message: f.Message}
	if err := text.Write(w, diag.List{d}); err != nil {
		return err
	}
	of := f.of()
	if in := c.in(f.Finding); in != "" {
		of += " in " + in
	}
	lines := []string{strings.TrimSpace(of)}
	if lines[0] == "" {
		lines = nil
	}
	if f.object != nil && f.object.Generated && f.Expression != "" {
		lines = append(lines, excerptOf(f.Finding)...)
	}
	if f.Accepted != "" {
		lines = append(lines, "accepted: "+f.Accepted)
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
