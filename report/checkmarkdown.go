package report

import (
	"fmt"
	"io"
	"strings"
)

// WriteMarkdown writes a page for a pull request: the totals, the findings, the gravest
// first, and what is dear. Accepted findings are only counted.
func (c Check) WriteMarkdown(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "# Check\n\n%s.\n", c.Totals)
	if rows := c.byRelease(); len(rows) > 2 {
		b.WriteString("\n| release | objects | errors | warnings | notes | codes |\n|---|---|---|---|---|---|\n")
		for _, row := range rows[1:] {
			fmt.Fprintf(&b, "| %s |\n", strings.Join(row, " | "))
		}
	}
	c.markdownFindings(&b)
	c.markdownCost(&b)
	_, err := io.WriteString(w, b.String())
	return err
}

func (c Check) markdownFindings(b *strings.Builder) {
	head := "\n## Findings\n\n| | place | code | of | message |\n|---|---|---|---|---|\n"
	for _, f := range c.found {
		if f.Accepted != "" {
			continue
		}
		b.WriteString(head)
		head = ""
		message := f.Message
		if in := c.in(f.Finding); in != "" {
			message += " (" + in + ")"
		}
		fmt.Fprintf(b, "| %s | %s | %s | %s | %s |\n", f.Severity, tableCell(f.Pos().String()), f.Code, tableCell(orDash(f.of())), tableCell(message))
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
