package report

import (
	"io"
	"strings"
	"unicode/utf8"
)

// A Coloured writer has the words of tables painted: red what is a finding, green
// what is well, yellow what is left open. Colours are those of diagnostics.
type Coloured struct{ io.Writer }

// colourOf is the colour of a cell, empty where it has none.
func colourOf(cell string) string {
	word, _, _ := strings.Cut(cell, " ")
	switch word {
	case "Fail", "fail", "deny", "error", "DISAGREE", "DISAGREE:", "disagree", "unsupported":
		return "31"
	case "Pass", "pass", "allow", "agree", "native", "cel":
		return "32"
	case "Deviates", "Excluded", "Not", "skip", "webhook", "left", "warn":
		return "33"
	}
	return ""
}

// gap is between the columns of a table.
const gap = 2

// writeTable writes rows, the first of which is the header, and the totals below.
// There is no table without rows.
func writeTable(w io.Writer, rows [][]string, totals string) error {
	_, coloured := w.(Coloured)
	var b strings.Builder
	if len(rows) > 1 {
		rows = inert(rows)
		wide := widths(rows)
		for i, row := range rows {
			for column, cell := range row {
				b.WriteString(painted(cell, coloured && i > 0))
				if column < len(row)-1 {
					b.WriteString(strings.Repeat(" ", wide[column]-utf8.RuneCountInString(cell)+gap))
				}
			}
			b.WriteByte('\n')
		}
	}
	b.WriteString(inLines(totals) + "\n")
	_, err := io.WriteString(w, b.String())
	return err
}

// inert makes each cell one line that does nothing.
func inert(rows [][]string) [][]string {
	out := make([][]string, len(rows))
	for i, row := range rows {
		for _, cell := range row {
			out[i] = append(out[i], inLine(cell))
		}
	}
	return out
}

// widths are those of the columns, in characters.
func widths(rows [][]string) []int {
	var out []int
	for _, row := range rows {
		for column, cell := range row {
			if column == len(out) {
				out = append(out, 0)
			}
			out[column] = max(out[column], utf8.RuneCountInString(cell))
		}
	}
	return out
}

func painted(cell string, coloured bool) string {
	code := colourOf(cell)
	if !coloured || code == "" {
		return cell
	}
	return "\x1b[" + code + "m" + cell + "\x1b[0m"
}
