package report

import (
	"fmt"
	"io"
	"strings"

	"github.com/kvap/kvap/diag"
)

// WriteMarkdown writes a page for a review: the totals, a table of rules, and
// what the reader must know.
func (c Conversion) WriteMarkdown(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "# Conversion\n\n%s.\n", c.Totals)
	if excluded := c.excluded(); excluded != "" {
		fmt.Fprintf(&b, "\n%s.\n", strings.ToUpper(excluded[:1])+excluded[1:])
	}
	if c.Totals.Rules > 0 {
		b.WriteString("\n| policy | rule | type | target | codes | objects |\n|---|---|---|---|---|---|\n")
		titles := c.titles()
		for i, p := range c.Policies {
			for _, r := range p.Rules {
				fmt.Fprintf(&b, "| %s | %s | %s | %s | %s | %s |\n",
					tableCell(titles[i]), tableCell(r.Name), tableCell(r.Type), r.Target, codeTexts(r.Codes), tableCell(orDash(strings.Join(r.Objects, " "))))
			}
		}
	}
	c.writeReasons(&b)
	c.writeDiagnostics(&b)
	_, err := io.WriteString(w, b.String())
	return err
}

func (c Conversion) writeReasons(b *strings.Builder) {
	head := "\n## Rules that are not native\n\n"
	if c.Totals.toKyverno() {
		head = "\n## Rules that are left\n\n"
	}
	titles := c.titles()
	for i, p := range c.Policies {
		for _, r := range p.Rules {
			if r.Target == Native || r.Target == CEL {
				continue
			}
			b.WriteString(head)
			head = ""
			fmt.Fprintf(b, "- %s / %s: %s\n", codeSpan(titles[i]), codeSpan(r.Name), inline(orDash(r.Reason)))
		}
	}
}

func (c Conversion) writeDiagnostics(b *strings.Builder) {
	head := "\n## Diagnostics\n\n"
	for _, d := range c.Diagnostics {
		if d.Severity == diag.Note {
			continue
		}
		b.WriteString(head)
		head = ""
		pos := diag.Pos{File: d.File, Line: d.Line, Col: d.Column, Path: d.Path}
		fmt.Fprintf(b, "- %s %s %s: %s\n", d.Severity, codeSpan(pos.String()), d.Code, inline(d.Message))
	}
}
