package report

import (
	"fmt"
	"io"
	"strings"

	"github.com/kvap/kvap/diag"
)

// WriteMarkdown writes a page for a pull request: the totals, the findings by object,
// and what is dear. Notes are only counted.
func (c Check) WriteMarkdown(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "# Check\n\n%s.\n", c.Totals)
	if rows := c.byRelease(); len(rows) > 2 {
		b.WriteString("\n| release | objects | errors | warnings | notes | codes |\n|---|---|---|---|---|---|\n")
		for _, row := range rows[1:] {
			fmt.Fprintf(&b, "| %s |\n", strings.Join(row, " | "))
		}
	}
	for _, o := range c.Objects {
		o.markdown(&b)
	}
	c.markdownCost(&b)
	_, err := io.WriteString(w, b.String())
	return err
}

func (o CheckedObject) markdown(b *strings.Builder) {
	head := fmt.Sprintf("\n## %s %s\n\n| | place | code | field | message |\n|---|---|---|---|---|\n", o.Kind, inline(o.Name))
	for _, g := range o.grouped() {
		if g.Severity == diag.Note {
			continue
		}
		b.WriteString(head)
		head = ""
		message := g.Message
		if len(g.releases) > 0 && len(o.Releases) > 1 {
			message += " (" + strings.Join(g.releases, ", ") + ")"
		}
		fmt.Fprintf(b, "| %s | %s | %s | %s | %s |\n", g.Severity, tableCell(g.Pos().String()), g.Code, tableCell(orDash(g.Field)), tableCell(message))
	}
}

// markdownCost lists what comes near to a limit.
func (c Check) markdownCost(b *strings.Builder) {
	head := "\n## Cost\n\n| object | field | estimate | measured | limit | safe |\n|---|---|---|---|---|---|\n"
	for _, o := range c.Objects {
		for _, k := range o.Cost {
			if max(k.Estimate, k.Measured) <= k.Limit/3 {
				continue
			}
			b.WriteString(head)
			head = ""
			fmt.Fprintf(b, "| %s | %s | %d | %d | %d | %s |\n", tableCell(o.Name), tableCell(k.Field), k.Estimate, k.Measured, k.Limit, tableCell(orDash(k.Safe)))
		}
	}
}
