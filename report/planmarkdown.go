package report

import (
	"fmt"
	"io"
	"slices"
	"strings"
)

// WriteMarkdown writes the page for a change request: the totals, a section for
// each wave, and what every code means.
func (p Plan) WriteMarkdown(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "# Migration plan\n\n%s.\n", p.Totals)
	for _, wave := range p.Waves {
		fmt.Fprintf(&b, "\n## Wave %d: %s\n\n%s\n\n", wave.Number, wave.Title, wave.Advice)
		b.WriteString("| policy | kind | becomes | action | rules | codes |\n|---|---|---|---|---|---|\n")
		for _, one := range p.Policies {
			if one.Wave == wave.Number {
				fmt.Fprintf(&b, "| %s | %s | %s | %s | %d | %s |\n",
					cell(one.title()), cell(one.Kind), one.Becomes, one.action(), len(one.Rules), codeList(one.codes()))
			}
		}
	}
	p.writeStaying(&b)
	p.writeCodes(&b)
	_, err := io.WriteString(w, b.String())
	return err
}

// writeStaying lists the rules that do not become native, with the reason.
func (p Plan) writeStaying(b *strings.Builder) {
	head := "\n## Rules that do not become native\n\n"
	for _, one := range p.Policies {
		for _, r := range one.Rules {
			if r.Target == Native {
				continue
			}
			fmt.Fprintf(b, "%s- %s / %s (%s): %s\n", head, code(one.title()), code(r.Rule), r.Target, inline(orDash(r.Reason)))
			head = ""
		}
	}
}

// writeCodes explains every code once.
func (p Plan) writeCodes(b *strings.Builder) {
	var all []PlannedCode
	for _, one := range p.Policies {
		for _, c := range one.codes() {
			if !slices.ContainsFunc(all, func(o PlannedCode) bool { return o.Code == c.Code }) {
				all = append(all, c)
			}
		}
	}
	slices.SortFunc(all, func(a, c PlannedCode) int { return int(a.Code) - int(c.Code) })
	head := "\n## What the codes mean\n\n"
	for _, c := range all {
		fmt.Fprintf(b, "%s- %s %s. %s\n", head, c.Code, inline(c.Title), inline(c.Remedy))
		head = ""
	}
}
