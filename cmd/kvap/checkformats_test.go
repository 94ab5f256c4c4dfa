package main

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"html"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/kvap/kvap/cmd/kvap/internal/convert"
	"github.com/kvap/kvap/internal/exit"
	"github.com/kvap/kvap/internal/input"
)

// Every format has the same findings: those of all fixtures, by their codes and severities.
// The totals say how many they are, and the exit code is theirs.
func TestFormatsHaveTheSameFindings(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("../../fixtures/*/policy.yaml")
	if err != nil || len(files) == 0 {
		t.Fatal(err)
	}
	f := checkFlags{Flags: convert.DefaultFlags(), failOn: "note", releases: []string{"1.30", "1.36"}, only: []string{"types", "lint"}}
	f.Mutations, f.verbose, f.noColor = convert.MutationsAuto, true, true
	cmd := newCheck()
	run, err := f.run(cmd)
	if err != nil {
		t.Fatal(err)
	}
	if run.Sources, run.Found, err = input.Sources(files, "", nil); err != nil {
		t.Fatal(err)
	}
	choices, err := f.perRelease(run)
	if err != nil {
		t.Fatal(err)
	}
	run.Compile(t.Context(), choices)
	result := run.Report()
	said := func(output string) string {
		var out bytes.Buffer
		cmd.SetOut(&out)
		f.output = output
		if err := f.write(cmd, result, run); err != nil {
			t.Fatal(err)
		}
		return out.String()
	}
	want := inJSON(t, said("json"))
	if n := result.Totals.Errors + result.Totals.Warnings + result.Totals.Notes; len(want) != n || n < 100 {
		t.Errorf("%d findings in JSON, and %s", len(want), result.Totals)
	}
	lines := func(pattern, text string) (out []string) {
		for _, m := range regexp.MustCompile(pattern).FindAllStringSubmatch(text, -1) {
			out = append(out, m[1]+" "+m[2])
		}
		return out
	}
	text := said("text")
	github := lines(`(?m)^::(\w+) .*title=(KV\d+)::`, strings.ReplaceAll(said("github"), "::notice", "::note"))
	for format, got := range map[string][]string{
		"text":     lines(`(?m)^(?:[^ ].*: )?(error|warning|note): .* \[(KV\d+)\]$`, text),
		"github":   github,
		"sarif":    inSARIF(t, said("sarif")),
		"markdown": lines(`(?m)^\| (error|warning|note) \| .*? \| (KV\d+) \|`, said("markdown")),
		"html":     inHTML(t, said("html")),
	} {
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Errorf("%s has %d findings, want %d: %v", format, len(got), len(want), difference(got, want))
		}
	}
	var codes []string
	for _, w := range want {
		codes = append(codes, w[strings.IndexByte(w, ' ')+1:])
	}
	slices.Sort(codes)
	if got := inJUnit(t, said("junit")); !slices.Equal(got, codes) {
		t.Errorf("junit has %d failures, want %d: %v", len(got), len(codes), difference(got, codes))
	}
	if !strings.HasSuffix(text, result.Totals.String()+"\n") {
		t.Errorf("the text does not end in the totals %s", result.Totals)
	}
	for least, want := range map[string]int{"note": exit.CodePartly, "error": exit.CodePartly} { // some fixtures are not read
		f.failOn = least
		if got := codeOf(f.verdict(run, result)); got != want {
			t.Errorf("--fail-on %s: exit code %d, want %d", least, got, want)
		}
	}
}

func codeOf(err error) int {
	var e *exit.Error
	if errors.As(err, &e) {
		return e.Code
	}
	return exit.CodeClean
}

// difference are elements that are more often in one of two sorted lists.
func difference(a, b []string) map[string]int {
	out := map[string]int{}
	for _, s := range a {
		out[s]++
	}
	for _, s := range b {
		out[s]--
	}
	for s, n := range out {
		if n == 0 {
			delete(out, s)
		}
	}
	return out
}

func inJSON(t *testing.T, text string) (out []string) {
	t.Helper()
	type finding struct{ Code, Severity, Accepted string }
	var c struct {
		Objects     []struct{ Findings []finding }
		Diagnostics []finding
	}
	if err := json.Unmarshal([]byte(text), &c); err != nil {
		t.Fatal(err)
	}
	all := c.Diagnostics
	for _, o := range c.Objects {
		all = append(all, o.Findings...)
	}
	for _, f := range all {
		out = append(out, f.Severity+" "+f.Code)
	}
	slices.Sort(out)
	return out
}

func inSARIF(t *testing.T, text string) (out []string) {
	t.Helper()
	var log struct {
		Runs []struct {
			Results []struct{ RuleID, Level string }
		}
	}
	if err := json.Unmarshal([]byte(text), &log); err != nil {
		t.Fatal(err)
	}
	for _, r := range log.Runs[0].Results {
		out = append(out, r.Level+" "+r.RuleID)
	}
	return out
}

func inJUnit(t *testing.T, text string) (out []string) {
	t.Helper()
	var suites struct {
		Suites []struct {
			Cases []struct {
				Name    string    `xml:"name,attr"`
				Failure *struct{} `xml:"failure"`
			} `xml:"testcase"`
		} `xml:"testsuite"`
	}
	if err := xml.Unmarshal([]byte(text), &suites); err != nil {
		t.Fatal(err)
	}
	for _, s := range suites.Suites {
		for _, c := range s.Cases {
			if c.Failure != nil {
				code, _, _ := strings.Cut(c.Name, " ")
				out = append(out, code)
			}
		}
	}
	slices.Sort(out)
	return out
}

// inHTML reads how many findings there are of each code, of which the page shows the first.
func inHTML(t *testing.T, text string) (out []string) {
	t.Helper()
	_, found, ok := strings.Cut(html.UnescapeString(text), "<h2>Findings</h2>")
	if !ok {
		t.Fatal("the page has no findings")
	}
	found, _, _ = strings.Cut(found, "<h2>")
	for _, m := range regexp.MustCompile(`<span class="tag (\w+)">(KV\d+)</span> (\d+) `).FindAllStringSubmatch(found, -1) {
		n, err := strconv.Atoi(m[3])
		if err != nil {
			t.Fatal(err)
		}
		for range n {
			out = append(out, m[1]+" "+m[2])
		}
	}
	return out
}
