package doc

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// markdown is a page for a review: the totals, and a part for each section.
func markdown(d Document) string {
	var b strings.Builder
	b.WriteString("# " + inline(d.Title) + "\n")
	for _, s := range append([]Section{d.Totals}, d.of(Markdown)...) {
		markdownSection(&b, s)
	}
	return b.String()
}

func markdownSection(b *strings.Builder, s Section) {
	if s.Title != "" {
		b.WriteString("\n## " + inline(s.Title) + "\n")
	}
	for _, p := range paragraphs(s.Text) {
		b.WriteString("\n" + inline(p) + "\n")
	}
	markdownTable(b, s.Table)
	markdownTable(b, alertRows(s.Alerts))
	if len(s.Items) > 0 {
		b.WriteByte('\n')
	}
	for i, item := range s.Items {
		mark := "- "
		if s.Numbered {
			mark = number(i)
		}
		markdownItem(b, item, "", mark)
	}
}

func number(i int) string { return fmt.Sprintf("%d. ", i+1) }

// paragraphs are the lines of a text as sentences.
func paragraphs(text string) (out []string) {
	for line := range strings.SplitSeq(text, "\n") {
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		if !strings.HasSuffix(line, ".") && !strings.HasSuffix(line, ":") {
			line += "."
		}
		_, first := utf8.DecodeRuneInString(line)
		out = append(out, strings.ToUpper(line[:first])+line[first:])
	}
	return out
}

// alertRows are what is not accepted, in a table.
func alertRows(alerts []Alert) [][]string {
	rows := [][]string{{"", "place", "code", "of", "message"}}
	for _, a := range alerts {
		if a.Accepted != "" {
			continue
		}
		message := a.Message
		if a.Releases != "" {
			message += " (" + a.Releases + ")"
		}
		rows = append(rows, []string{a.Severity.String(), a.Pos.String(), a.Rule, OrDash(a.Short), message})
	}
	return rows
}

func markdownTable(b *strings.Builder, rows [][]string) {
	if len(rows) < 2 {
		return
	}
	for i, row := range rows {
		line := "|"
		for _, cell := range row {
			if cell = tableCell(cell); cell != "" {
				cell = " " + cell
			}
			line += cell + " |"
		}
		if i == 0 {
			line = "\n" + line + "\n" + strings.Repeat("|---", len(row)) + "|"
		}
		b.WriteString(line + "\n")
	}
}

// markdownItem writes an item, with its particulars as a list in it.
func markdownItem(b *strings.Builder, i Item, indent, mark string) {
	b.WriteString(indent + mark + i.headed(codeSpan, inline) + "\n")
	indent += strings.Repeat(" ", len(mark))
	if i.Code != "" {
		// Four spaces more make it code, which nothing in it can end.
		lines := strings.ReplaceAll(inLines(strings.TrimRight(i.Code, "\n")), "\n", "\n"+indent+"    ")
		b.WriteString("\n" + indent + "    " + lines + "\n\n")
	}
	for _, one := range i.Items {
		markdownItem(b, one, indent, "- ")
	}
}
