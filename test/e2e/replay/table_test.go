//go:build e2e

package replay

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
)

// conformanceTable is where the results of Kyverno's own cluster tests are written.
const conformanceTable = "../../../docs/conformance.md"

// An outcome is how a test went, or why it is counted apart.
type outcome struct {
	apart  string
	failed error
}

// results are the outcomes of tests.
type results struct {
	known
	tests []string
	mu    sync.Mutex
	all   map[string]outcome
}

func (r *results) put(name string, o outcome) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.all == nil {
		r.all = map[string]outcome{}
	}
	r.all[name] = o
}

// A tally counts the tests of a folder.
type tally struct{ passed, judged, apart int }

func (y *tally) add(o outcome) {
	switch {
	case o.apart != "":
		y.apart++
		return
	case o.failed == nil:
		y.passed++
	}
	y.judged++
}

func (y tally) share() string {
	if y.judged == 0 {
		return "–"
	}
	return fmt.Sprintf("%d %%", 100*y.passed/y.judged) // 100 only where none fails
}

// tallies are those of the folders, and the one of all.
func (r *results) tallies() (folders map[string]*tally, total tally) {
	folders = map[string]*tally{}
	for name, o := range r.all {
		folder, _, _ := strings.Cut(name, "/")
		if folders[folder] == nil {
			folders[folder] = &tally{}
		}
		folders[folder].add(o)
		total.add(o)
	}
	return folders, total
}

func (r *results) summary() string {
	_, total := r.tallies()
	return fmt.Sprintf("%d of %d judged tests pass (%s), %d are counted apart", total.passed, total.judged, total.share(), total.apart)
}

// table is the document.
func (r *results) table() string {
	var b strings.Builder
	folders, total := r.tallies()
	b.WriteString(conformanceHead)
	b.WriteString("| folder | pass | judged | share | counted apart |\n|---|--:|--:|--:|--:|\n")
	row := func(name string, y tally) {
		fmt.Fprintf(&b, "| %s | %d | %d | %s | %d |\n", name, y.passed, y.judged, y.share(), y.apart)
	}
	for _, name := range slices.Sorted(maps.Keys(folders)) {
		row("`"+name+"`", *folders[name])
	}
	row("**all**", total)
	b.WriteString("\n## Judged, and failing\n\n")
	failing := map[string][]string{}
	apart := map[string][]string{}
	for _, name := range r.tests {
		o := r.all[name]
		switch {
		case o.apart != "":
			apart[o.apart] = append(apart[o.apart], name)
		case o.failed != nil && r.Failing[name] != "":
			failing[r.Failing[name]] = append(failing[r.Failing[name]], name)
		case o.failed != nil:
			failing["not known yet"] = append(failing["not known yet"], name)
		}
	}
	list(&b, failing)
	b.WriteString("\n## Counted apart\n\n")
	list(&b, apart)
	return b.String()
}

// list lists tests by reason, those with most first.
func list(b *strings.Builder, reasons map[string][]string) {
	sorted := slices.SortedFunc(maps.Keys(reasons), func(x, y string) int {
		if d := len(reasons[y]) - len(reasons[x]); d != 0 {
			return d
		}
		return strings.Compare(x, y)
	})
	for _, reason := range sorted {
		fmt.Fprintf(b, "- %d: %s\n", len(reasons[reason]), reason)
		for _, name := range reasons[reason] {
			fmt.Fprintf(b, "  - `%s`\n", name)
		}
	}
}

const conformanceHead = `# Kyverno's own cluster tests

Kyverno has tests for its cluster, written for chainsaw. Half of those of Kyverno 1.19.0 are in the corpus that kvap is
developed with; ` + "`make e2e-conformance`" + ` runs them with ` + "`kvap-controller --mode enforce`" + ` in place of Kyverno and writes this page.

A test passes when each of its steps goes as it is written: what is applied is taken or refused, what is asserted comes
true, scripts end as they should. Two assertions are answered by kvap's status in place of Kyverno's: that a policy is
ready, and which rules are generated for pod controllers. Sleeps are cut to two seconds, and assertions after them get
the time that was cut. The control plane has no nodes, so nothing runs: what is asserted of the status of
Pods and workloads is left out. It has no network to image registries either.

Tests that are counted apart are about something that kvap does not promise or that the control plane cannot do; the
reasons are below, and in ` + "`test/e2e/replay/testdata/conformance.yaml`" + `.

`
