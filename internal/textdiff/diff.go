package textdiff

import (
	"slices"
	"strings"
)

// limit bounds the pairs of lines that are compared.
const limit = 4 << 20

// around is how many lines that stay are shown beside a change.
const around = 3

// A line is one of either text, or of both.
type line struct {
	mark byte // '-', '+' or ' '
	text string
}

// Diff is what makes one text of the other; empty where they are the same.
func Diff(before, after string) string {
	if before == after {
		return ""
	}
	return show(changes(split(before), split(after)))
}

func split(text string) []string {
	return strings.Split(strings.TrimSuffix(text, "\n"), "\n")
}

// changes are all lines of both texts. What both begin and end with need not be
// compared.
func changes(a, b []string) (out []line) {
	from := 0
	for from < len(a) && from < len(b) && a[from] == b[from] {
		from++
	}
	to := 0
	for to < len(a)-from && to < len(b)-from && a[len(a)-1-to] == b[len(b)-1-to] {
		to++
	}
	out = marked(out, ' ', a[:from])
	out = append(out, middle(a[from:len(a)-to], b[from:len(b)-to])...)
	return marked(out, ' ', a[len(a)-to:])
}

func marked(out []line, mark byte, texts []string) []line {
	for _, t := range texts {
		out = append(out, line{mark, t})
	}
	return out
}

// middle keeps the longest sequence of lines that both have.
func middle(a, b []string) (out []line) {
	if len(a)*len(b) > limit {
		return marked(marked(nil, '-', a), '+', b)
	}
	// same[i][j] is how many lines a[i:] and b[j:] have in common
	same := make([][]int, len(a)+1)
	for i := range same {
		same[i] = make([]int, len(b)+1)
	}
	for i, x := range slices.Backward(a) {
		for j, y := range slices.Backward(b) {
			if x == y {
				same[i][j] = same[i+1][j+1] + 1
			} else {
				same[i][j] = max(same[i+1][j], same[i][j+1])
			}
		}
	}
	i, j := 0, 0
	for i < len(a) && j < len(b) {
		switch {
		case a[i] == b[j]:
			out = append(out, line{' ', a[i]})
			i, j = i+1, j+1
		case same[i+1][j] >= same[i][j+1]:
			out = append(out, line{'-', a[i]})
			i++
		default:
			out = append(out, line{'+', b[j]})
			j++
		}
	}
	return marked(marked(out, '-', a[i:]), '+', b[j:])
}

// show leaves out what is far from any change.
func show(lines []line) string {
	near := make([]bool, len(lines))
	for i, l := range lines {
		if l.mark != ' ' {
			for k := max(0, i-around); k < min(len(lines), i+around+1); k++ {
				near[k] = true
			}
		}
	}
	var b strings.Builder
	for i, l := range lines {
		switch {
		case near[i]:
			b.WriteString(string(l.mark) + " " + l.text + "\n")
		case i > 0 && near[i-1], i == 0:
			b.WriteString("  …\n")
		}
	}
	return b.String()
}
