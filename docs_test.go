package kvap_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestLinksLeadSomewhere: a link in a page leads to a file that is there, and
// its fragment to a heading of that page.
func TestLinksLeadSomewhere(t *testing.T) {
	pages, err := filepath.Glob("docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	decisions, err := filepath.Glob("docs/adr/*.md")
	if err != nil {
		t.Fatal(err)
	}
	pages = append(append(pages, decisions...), "README.md", "CONTRIBUTING.md", "CHANGELOG.md", "deploy/chart/README.md")
	link := regexp.MustCompile(`\]\(([^)\s]+)\)`)
	links := 0
	for _, page := range pages {
		for _, m := range link.FindAllStringSubmatch(read(t, page), -1) {
			if strings.HasPrefix(m[1], "http") {
				continue
			}
			links++
			path, fragment, _ := strings.Cut(m[1], "#")
			target := page
			if path != "" {
				target = filepath.Join(filepath.Dir(page), path)
			}
			if _, err := os.Stat(target); err != nil {
				t.Errorf("%s: %s leads to no file", page, m[1])
			} else if fragment != "" && !headings(read(t, target))[fragment] {
				t.Errorf("%s: %s leads to no heading", page, m[1])
			}
		}
	}
	if links < 50 {
		t.Errorf("found %d links in %d pages: that cannot be all", links, len(pages))
	}
}

// TestDependenciesAreListed: a page says of each direct dependency what it is for.
func TestDependenciesAreListed(t *testing.T) {
	page := read(t, "docs/dependencies.md")
	module := regexp.MustCompile(`(?m)^\t(\S+) v\S+(.*)$`)
	direct := map[string]bool{}
	for _, m := range module.FindAllStringSubmatch(read(t, "go.mod"), -1) {
		if strings.Contains(m[2], "// indirect") {
			continue
		}
		if direct[m[1]] = true; !strings.Contains(page, "`"+m[1]+"`") {
			t.Errorf("docs/dependencies.md does not say what %s is for", m[1])
		}
	}
	for _, m := range regexp.MustCompile("`((?:\\w+\\.)+\\w+/[^`]+)`").FindAllStringSubmatch(page, -1) {
		if !direct[m[1]] && !strings.HasSuffix(m[1], ".go") {
			t.Errorf("docs/dependencies.md speaks of %s, which go.mod does not name as direct", m[1])
		}
	}
}

// headings has the fragment of each heading of a page, as GitHub makes it.
func headings(page string) map[string]bool {
	had := map[string]bool{}
	dropped := regexp.MustCompile(`[^\p{L}\p{N}\- ]`)
	for line := range strings.Lines(page) {
		if text := strings.TrimLeft(line, "#"); text != line {
			had[strings.ReplaceAll(dropped.ReplaceAllString(strings.ToLower(strings.TrimSpace(text)), ""), " ", "-")] = true
		}
	}
	return had
}

func read(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// TestCIRunsWhatTheReadmeSays: every make command of the README is one that CI runs, and
// make check is all of CI, in its order.
func TestCIRunsWhatTheReadmeSays(t *testing.T) {
	var ci []string
	for line := range strings.Lines(read(t, ".ci/run")) {
		if target, ok := strings.CutPrefix(strings.TrimSpace(line), "make "); ok {
			ci = append(ci, target)
		}
	}
	for _, m := range regexp.MustCompile(`(?m)^make ([a-z-]+)`).FindAllStringSubmatch(read(t, "README.md"), -1) {
		if !slices.Contains(ci, m[1]) {
			t.Errorf(".ci/run does not run make %s, which the README offers", m[1])
		}
	}
	if want := "\ncheck: " + strings.Join(ci, " ") + " ##"; !strings.Contains(read(t, "Makefile"), want) {
		t.Errorf("Makefile: check is not what .ci/run runs: %q", want)
	}
}

// TestGuardsAreThere: a test that the architecture names as the guard of a principle exists.
func TestGuardsAreThere(t *testing.T) {
	there := map[string]bool{}
	err := filepath.WalkDir(".", func(path string, _ fs.DirEntry, err error) error {
		if err == nil && strings.HasSuffix(path, "_test.go") {
			for _, m := range regexp.MustCompile(`(?m)^func ((Test|Fuzz)\w+)\(`).FindAllStringSubmatch(read(t, path), -1) {
				there[m[1]] = true
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	guards := regexp.MustCompile("`((Test|Fuzz)\\w+)`").FindAllStringSubmatch(read(t, "docs/architecture.md"), -1)
	for _, m := range guards {
		if !there[m[1]] {
			t.Errorf("docs/architecture.md names %s, which is no test", m[1])
		}
	}
	if len(guards) < 20 {
		t.Errorf("found %d guards: that cannot be all", len(guards))
	}
}

// TestNotesCiteTheSemantics: the number that a fixture's note begins with is a section of
// docs/semantics-by-number.md.
func TestNotesCiteTheSemantics(t *testing.T) {
	sections := map[string]bool{}
	for _, m := range regexp.MustCompile(`(?m)^#+ (\d+(?:\.\d+)*) `).FindAllStringSubmatch(read(t, "docs/semantics-by-number.md"), -1) {
		sections[m[1]] = true
	}
	files, err := filepath.Glob("fixtures/*/cases.yaml")
	if err != nil {
		t.Fatal(err)
	}
	cited := 0
	for _, file := range files {
		for _, m := range regexp.MustCompile(`(?m)note: "?(\d[\d., ]*):`).FindAllStringSubmatch(read(t, file), -1) {
			for _, number := range strings.Split(m[1], ",") {
				cited++
				if !sections[strings.TrimSpace(number)] {
					t.Errorf("%s cites %s, which is no section of docs/semantics-by-number.md", file, number)
				}
			}
		}
	}
	if cited < 600 {
		t.Errorf("found %d citations: that cannot be all", cited)
	}
}
