package report

import (
	"fmt"
	"io"
	"strings"
)

// WriteMarkdown writes a page for a pull request: the totals, and the rows that did
// not pass.
func (r TestRun) WriteMarkdown(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "# Tests\n\n%s.\n", r.Totals)
	for _, s := range r.Suites {
		head := fmt.Sprintf("\n## %s\n\n| policy | rule | resource | expected | result | reason |\n|---|---|---|---|---|---|\n", inline(s.title()))
		for _, row := range s.Rows {
			if row.Result == rowPass {
				continue
			}
			b.WriteString(head)
			head = ""
			fmt.Fprintf(&b, "| %s | %s | %s | %s | %s | %s |\n", tableCell(row.Policy), tableCell(orDash(row.shownRule())), tableCell(orDash(row.Resource)), tableCell(row.Expected), row.word(), tableCell(row.Reason))
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}
