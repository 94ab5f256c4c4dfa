package textdiff

import (
	"fmt"
	"strings"

	"github.com/rogpeppe/go-internal/diff"
)

// Diff is what makes one text of the other, with a few lines around each change; empty
// where they are the same.
func Diff(before, after string) string {
	before, after = strings.TrimSuffix(before, "\n")+"\n", strings.TrimSuffix(after, "\n")+"\n"
	hunks := strings.Split(string(diff.Diff("", []byte(before), "", []byte(after))), "\n@@ ")
	var b strings.Builder
	told := 0 // lines of the text before
	skip := func(to int) {
		if to > told {
			b.WriteString("  …\n")
		}
	}
	for _, hunk := range hunks[1:] { // behind the names of the texts
		place, lines, _ := strings.Cut(hunk, "\n")
		var from, n int
		_, _ = fmt.Sscanf(place, "-%d,%d", &from, &n) // it has this form
		skip(from - 1)
		told = from - 1 + n
		for line := range strings.Lines(lines) {
			b.WriteString(line[:1] + " " + strings.TrimSuffix(line[1:], "\n") + "\n")
		}
	}
	if len(hunks) > 1 {
		skip(strings.Count(before, "\n"))
	}
	return b.String()
}
