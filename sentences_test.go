package kvap_test

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// longest is how many words a sentence of the README and the docs has at most. Code counts as one
// word, and the cells of a table are read one by one.
const longest = 30

// mayBeLong are the sentences that are longer, by their beginnings: each with its reason.
func mayBeLong() map[string]string {
	return map[string]string{
		"The other decisions:": "a list of links",
	}
}

// TestSentencesAreShort: no sentence of the README and the docs has more than thirty words.
func TestSentencesAreShort(t *testing.T) {
	pages, err := filepath.Glob("docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	met := map[string]bool{}
	for _, page := range append(pages, "README.md") {
		for _, s := range sentences(read(t, page)) {
			n := len(strings.Fields(s))
			if n <= longest {
				continue
			}
			excused := false
			for begin := range mayBeLong() {
				if strings.HasPrefix(s, begin) {
					met[begin], excused = true, true
				}
			}
			if !excused {
				t.Errorf("%s has a sentence of %d words: %s", page, n, s)
			}
		}
	}
	for begin := range mayBeLong() {
		if !met[begin] {
			t.Errorf("no long sentence begins with %q any more", begin)
		}
	}
}

// sentences are those of a page: of its paragraphs, items and cells, without code blocks, what
// programs write between marks, and the targets of links.
func sentences(page string) (all []string) {
	page = regexp.MustCompile("(?ms)^ *```.*?^ *```$").ReplaceAllString(page, "\n\n")
	page = regexp.MustCompile(`(?s)<!-- [\w.-]+: begin -->.*?<!-- [\w.-]+: end -->`).ReplaceAllString(page, "\n\n")
	page = regexp.MustCompile("`[^`]*`").ReplaceAllString(page, "CODE")
	page = regexp.MustCompile(`\]\([^)]*\)`).ReplaceAllString(page, "]")
	var blocks []string
	open := false // whether the last block goes on
	item := regexp.MustCompile(`^([-*]|\d+\.) `)
	for line := range strings.Lines(page) {
		line = strings.TrimSpace(line)
		switch {
		case line == "" || strings.HasPrefix(line, "#"):
			open = false
		case strings.HasPrefix(line, "|"):
			open = false
			blocks = append(blocks, strings.Split(strings.ReplaceAll(line, `\|`, ""), "|")...)
		case item.MatchString(line):
			open = true
			blocks = append(blocks, item.ReplaceAllString(line, ""))
		case open:
			blocks[len(blocks)-1] += " " + line
		default:
			open = true
			blocks = append(blocks, line)
		}
	}
	end := regexp.MustCompile(`[.!?]["')*]*\s+`)
	for _, b := range blocks {
		for rest := b; rest != ""; {
			at := end.FindStringIndex(rest)
			if at == nil {
				at = []int{0, len(rest)}
			}
			all = append(all, strings.TrimSpace(rest[:at[1]]))
			rest = rest[at[1]:]
		}
	}
	return slices.DeleteFunc(all, func(s string) bool { return s == "" })
}
