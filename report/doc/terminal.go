package doc

import (
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/kvap/kvap/diag"
)

// A terminal is text in the making.
type terminal struct {
	strings.Builder
	text diag.Text
}

// writeText writes the sections with an empty line between them, and the totals: right below
// a table, else set off like a section.
func writeText(w io.Writer, d Document, text diag.Text) error {
	t := &terminal{text: text}
	sections := d.of(Terminal)
	for i, s := range sections {
		if i > 0 {
			t.WriteByte('\n')
		}
		if err := t.section(s); err != nil {
			return err
		}
	}
	if d.Totals.isIn(Terminal) {
		if last := len(sections) - 1; last >= 0 && (len(sections[last].Table) < 2 || sections[last].Text != "") {
			t.WriteByte('\n')
		}
		if err := t.section(d.Totals); err != nil {
			return err
		}
	}
	_, err := io.WriteString(w, t.String())
	return err
}

func (t *terminal) section(s Section) error {
	if s.Text != "" {
		t.WriteString(inLines(s.Text) + "\n")
	}
	t.table(s.Table)
	for _, a := range s.Alerts {
		if err := t.alert(a); err != nil {
			return err
		}
	}
	before := false // whether there was a block
	for i, item := range s.Items {
		block := item.Code != "" || len(item.Items) > 0
		if (block || before) && (i > 0 || len(s.Table) > 1) {
			t.WriteByte('\n')
		}
		before = block
		mark := ""
		if s.Numbered {
			mark = number(i)
		}
		t.item(item, "", mark)
	}
	return nil
}

// item writes an item, and its particulars below it.
func (t *terminal) item(i Item, indent, mark string) {
	in := "\n" + indent + "  "
	t.WriteString(indent + mark + strings.ReplaceAll(i.headed(inLine, inLines), "\n", in) + "\n")
	if i.Code != "" {
		for line := range strings.SplitSeq(strings.TrimRight(i.Code, "\n"), "\n") {
			t.WriteString(strings.TrimRight(indent+"  "+inLines(line), " ") + "\n")
		}
	}
	for _, one := range i.Items {
		t.item(one, indent+"  ", "")
	}
}

// alert writes a diagnostic, what it is in, and an excerpt of what the source does not show.
func (t *terminal) alert(a Alert) error {
	code, _ := diag.ParseCode(a.Rule)
	if err := t.text.Write(t, diag.List{{Code: code, Severity: a.Severity, Pos: a.Pos, Message: a.Message}}); err != nil {
		return err
	}
	var lines []string
	of := a.Short
	if a.Releases != "" {
		of += " in " + a.Releases
	}
	if of = strings.TrimSpace(of); of != "" {
		lines = append(lines, of)
	}
	if a.Hidden {
		lines = append(lines, a.Excerpt...)
	}
	if a.Accepted != "" {
		lines = append(lines, "accepted: "+a.Accepted)
	}
	for _, line := range lines {
		t.WriteString("      = " + inLine(line) + "\n")
	}
	return nil
}

// gap is between the columns of a table.
const gap = 2

// table writes rows, the first of which is the header. There is no table without rows.
func (t *terminal) table(rows [][]string) {
	if len(rows) < 2 {
		return
	}
	var wide []int // the columns, in characters
	shown := make([][]string, len(rows))
	for i, row := range rows {
		for column, cell := range row {
			if i == 0 {
				cell = strings.ToUpper(cell)
			}
			cell = inLine(cell)
			shown[i] = append(shown[i], cell)
			if column == len(wide) {
				wide = append(wide, 0)
			}
			wide[column] = max(wide[column], utf8.RuneCountInString(cell))
		}
	}
	for i, row := range shown {
		for column, cell := range row {
			painted := cell
			if colour := map[string]string{bad: "31", good: "32", fair: "33"}[toneOf(rows[0][column], cell)]; colour != "" && t.text.Colour && i > 0 {
				painted = "\x1b[" + colour + "m" + cell + "\x1b[0m"
			}
			t.WriteString(painted)
			if column < len(row)-1 {
				t.WriteString(strings.Repeat(" ", wide[column]-utf8.RuneCountInString(cell)+gap))
			}
		}
		t.WriteByte('\n')
	}
}

// The tones of cells: what is a finding, what is well, and what is left open.
const (
	bad  = "bad"
	good = "good"
	fair = "fair"
)

// toneOf is the tone of a cell below a heading, empty where it has none. A policy that somebody
// calls native has none.
func toneOf(heading, cell string) string {
	if slices.Contains([]string{"policy", "kind", "rule", "name", "old", "new", "unmanaged", "request"}, strings.ToLower(heading)) {
		return ""
	}
	word, _, _ := strings.Cut(cell, " ")
	switch word {
	case "Fail", "fail", "deny", "error", "DISAGREE", "DISAGREE:", "disagree", "unsupported":
		return bad
	case "Pass", "pass", "allow", "agree", "native", "cel":
		return good
	case "Deviates", "Excluded", "Not", "skip", "webhook", "left", "warn":
		return fair
	}
	return ""
}
