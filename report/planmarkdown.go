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
		b.WriteString("| policy | kind | becomes | action | rules | violated | on 1.20 | on 1.21 | codes |\n|---|---|---|---|---|---|---|---|---|\n")
		for _, one := range p.Policies {
			if one.Wave == wave.Number {
				fmt.Fprintf(&b, "| %s | %s | %s | %s | %d | %s | %s | %s | %s |\n", tableCell(one.title()), tableCell(one.Kind), one.Becomes, one.action(), len(one.Rules),
					one.violated(), orDash(one.Kyverno.On120), orDash(one.Kyverno.On121), codeList(one.codes()))
			}
		}
	}
	p.writeUpgrade(&b)
	p.writeViolations(&b)
	p.writeCosts(&b)
	p.writeStaying(&b)
	p.writeCodes(&b)
	_, err := io.WriteString(w, b.String())
	return err
}

// writeUpgrade lists what comes with the next versions of Kyverno.
func (p Plan) writeUpgrade(b *strings.Builder) {
	head := "\n## What Kyverno 1.20 and 1.21 change\n\n"
	for _, line := range p.upgradeLines() {
		b.WriteString(head + "- " + inline(line) + "\n")
		head = ""
	}
}

// writeViolations lists what existing objects violate.
func (p Plan) writeViolations(b *strings.Builder) {
	if p.Looked == nil {
		return
	}
	fmt.Fprintf(b, "\n## What existing objects violate\n\n%s.\n", inline(p.Looked.String()))
	head := "\n"
	for _, r := range p.violatedRules() {
		fmt.Fprintf(b, "%s- %s / %s: %s\n", head, codeSpan(r.policy), codeSpan(r.rule), inline(r.Violations.String()))
		head = ""
	}
}

// writeCosts has a row for each of the busiest resources.
func (p Plan) writeCosts(b *strings.Builder) {
	rows := p.costRows(mostOnPage)
	if len(rows) == 1 {
		return
	}
	fmt.Fprintf(b, "\n## What a request costs\n\n%s\n\n", costNote)
	for i, row := range rows {
		for j := range row {
			row[j] = tableCell(row[j])
		}
		line := "| " + strings.Join(row, " | ") + " |\n"
		if i == 0 {
			line = strings.ToLower(line)
		}
		b.WriteString(line)
		if i == 0 {
			b.WriteString(strings.Repeat("|---", len(row)) + "|\n")
		}
	}
}

// writeStaying lists the rules that do not become native, with the reason.
func (p Plan) writeStaying(b *strings.Builder) {
	head := "\n## Rules that do not become native\n\n"
	for _, one := range p.Policies {
		for _, r := range one.Rules {
			if r.Target == Native {
				continue
			}
			fmt.Fprintf(b, "%s- %s / %s (%s): %s\n", head, codeSpan(one.title()), codeSpan(r.Rule), r.Target, inline(orDash(r.Reason)))
			head = ""
		}
	}
}

// writeCodes explains every code once.
func (p Plan) writeCodes(b *strings.Builder) {
	head := "\n## What the codes mean\n\n"
	for _, c := range p.allCodes() {
		fmt.Fprintf(b, "%s- %s %s. %s\n", head, c.Code, inline(c.Title), inline(c.Remedy))
		head = ""
	}
}

// allCodes are those of all policies, each once, in their order.
func (p Plan) allCodes() []PlannedCode {
	var all []PlannedCode
	for _, one := range p.Policies {
		for _, c := range one.codes() {
			if !slices.ContainsFunc(all, func(o PlannedCode) bool { return o.Code == c.Code }) {
				all = append(all, c)
			}
		}
	}
	slices.SortFunc(all, func(a, c PlannedCode) int { return int(a.Code) - int(c.Code) })
	return all
}
