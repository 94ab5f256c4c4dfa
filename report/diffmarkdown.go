package report

import (
	"fmt"
	"io"
	"strings"

	"sigs.k8s.io/yaml"
)

// WriteMarkdown writes a page for a pull request: the totals, a table, and each request on which
// the sides differ.
func (d Diff) WriteMarkdown(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "# Do they say the same?\n\n%s, old, and %s, new. %s.\nNo difference found is evidence, and no proof.\n", inline(d.Old), inline(d.New), d.Totals)
	if len(d.Comparisons) > 0 {
		b.WriteString("\n| old | new | paired by | requests | violated | questions | result |\n|---|---|---|---|---|---|---|\n")
	}
	for _, row := range d.rows()[1:] {
		for i := range row {
			row[i] = tableCell(row[i])
		}
		fmt.Fprintf(&b, "| %s |\n", strings.Join(row, " | "))
	}
	for _, c := range d.Comparisons {
		for _, f := range c.Differences {
			f.markdown(&b, c)
		}
	}
	if len(d.NotJudged) > 0 {
		b.WriteString("\n## Not compared\n\n")
		for _, n := range d.NotJudged {
			fmt.Fprintf(&b, "- %s: it %s\n", inline(n.title()), inline(n.Why))
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func (d DiffDifference) markdown(b *strings.Builder, c DiffComparison) {
	fmt.Fprintf(b, "\n## %s\n\n%s.\n", inline(c.title()), inline(d.headline(c)))
	if d.Line == nil {
		return
	}
	fmt.Fprintf(b, "\n- old: %s\n- new: %s\n- request: %s\n", inline(d.Old.line()), inline(d.New.line()), inline(d.Summary))
	object := d.Object
	if object == nil {
		object = d.OldObject
	}
	if data, err := yaml.Marshal(object); err == nil {
		b.WriteString("\n" + indented(string(data)) + "\n")
	}
}

// indented is text as a block of code, which nothing in it can end.
func indented(text string) string {
	return "    " + strings.ReplaceAll(strings.TrimRight(text, "\n"), "\n", "\n    ")
}
