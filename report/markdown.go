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
		for _, p := range c.Policies {
			for _, r := range p.Rules {
				fmt.Fprintf(&b, "| %s | %s | %s | %s | %s | %s |\n",
					cell(p.title()), cell(r.Name), cell(r.Type), r.Target, codes(r.Codes), cell(orDash(strings.Join(r.Objects, " "))))
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
	for _, p := range c.Policies {
		for _, r := range p.Rules {
			if r.Target == Native {
				continue
			}
			b.WriteString(head)
			head = ""
			fmt.Fprintf(b, "- %s / %s: %s\n", code(p.title()), code(r.Name), inline(orDash(r.Reason)))
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
		fmt.Fprintf(b, "- %s %s %s: %s\n", d.Severity, code(pos.String()), d.Code, inline(d.Message))
	}
}

// cell makes s safe inside a table.
func cell(s string) string { return strings.ReplaceAll(inline(s), "|", `\|`) }

// inline makes s one line that Markdown does not read as markup: names and messages
// are anybody's, and a page for a review must load and link nothing of theirs.
func inline(s string) string {
	return strings.NewReplacer("\n", " ", "\r", "", "<", "&lt;", "*", `\*`, "_", `\_`, "`", "\\`", `\`, `\\`,
		"](", `]\(`, "][", `]\[`, "]:", `]\:`).Replace(s)
}

// code makes s a piece of code, whatever is in it.
func code(s string) string {
	s = strings.NewReplacer("\n", " ", "\r", "").Replace(s)
	fence := "`"
	for strings.Contains(s, fence) {
		fence += "`"
	}
	if fence == "`" {
		return fence + s + fence
	}
	return fence + " " + s + " " + fence
}
