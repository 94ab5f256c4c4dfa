package policy_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/policy"
)

// Each file of testdata/bad holds documents with mistakes. A line at fault ends in
// the codes that are expected there, and may go on with a piece of the message:
//
//	kinds: Pod  ### KV107: must be a list
func TestBadInputs(t *testing.T) {
	files, err := filepath.Glob("testdata/bad/*")
	if err != nil || len(files) == 0 {
		t.Fatal("no files", err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			wants := expectations(string(data))
			_, ds := policy.Parse(file, data)
			for _, d := range ds {
				if d.Code == diag.OtherKind {
					continue
				}
				checkPlace(t, d)
				i := slices.IndexFunc(wants, func(w expectation) bool {
					return w.line == d.Line && w.code == d.Code.String() && strings.Contains(d.Message, w.text)
				})
				if i < 0 {
					t.Errorf("unexpected: %v", d)
					continue
				}
				wants = slices.Delete(wants, i, i+1)
			}
			for _, w := range wants {
				t.Errorf("%s:%d: no %s %s", file, w.line, w.code, w.text)
			}
		})
	}
}

type expectation struct {
	line int
	code string
	text string
}

func expectations(text string) (wants []expectation) {
	code := regexp.MustCompile(`^(KV\d{3})(?:: (.*))?$`)
	number := 0
	for line := range strings.Lines(text) {
		number++
		_, comment, ok := strings.Cut(strings.TrimRight(line, "\r\n"), "### ")
		if !ok {
			continue
		}
		for part := range strings.SplitSeq(comment, " ### ") {
			m := code.FindStringSubmatch(strings.TrimSpace(part))
			if m != nil {
				wants = append(wants, expectation{number, m[1], m[2]})
			}
		}
	}
	return wants
}

// checkPlace holds what every diagnostic must have.
func checkPlace(t *testing.T, d diag.Diagnostic) {
	t.Helper()
	if d.File == "" || d.Line <= 0 || d.Col <= 0 || d.Message == "" || d.Code < 100 || d.Code > 199 {
		t.Errorf("incomplete diagnostic: %#v", d)
	}
}

// Every code of reading has an example in its comment that yields it.
func TestExamplesYieldTheirCodes(t *testing.T) {
	for _, code := range diag.Codes() {
		if code >= 200 || code == diag.UnknownField { // which takes types: translate has the test
			continue
		}
		text, ok := diag.Example(code)
		if !ok {
			continue
		}
		_, ds := policy.Parse("example.yaml", []byte(text))
		found := slices.ContainsFunc(ds, func(d diag.Diagnostic) bool { return d.Code == code })
		if !found || len(ds) != 1 {
			t.Errorf("the example of %s yields %v:\n%s", code, ds, text)
		}
	}
}

// A rule with an error stays, and takes neither its neighbours nor its policy along;
// an error around the rules takes them all.
func TestInvalidRulesStay(t *testing.T) {
	const text = `apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: p}
spec:
  rules:
    - {name: good, match: {any: [{resources: {kinds: [Pod]}}]}, validate: {pattern: {spec: {x: 1}}}}
    - {name: bad, match: {any: [{resources: {kinds: Pod}}]}, validate: {pattern: {spec: {x: 1}}}}
    - {name: merged, match: {any: [{resources: {kinds: [Pod]}}]}, validate: {pattern: {spec: {x: 1, <<: 2}}}}
    - just text
---
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: q}
spec:
  validationFailureActon: Enforce
  rules:
    - {name: good, match: {any: [{resources: {kinds: [Pod]}}]}, validate: {pattern: {spec: {x: 1}}}}
---
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: r, bad
---
apiVersion: v1
kind: List
items:
  - apiVersion: kyverno.io/v1
    kind: Policy
    metadata: {name: s}
    spec:
      rules:
        - {name: good, match: {any: [{resources: {kinds: [Pod]}}]}, validate: {pattern: {spec: {x: 1, <<: 2}}}}
  - apiVersion: kyverno.io/v1
    kind: Policy
    metadata: {name: t}
    spec:
      rules:
        - {name: good, match: {any: [{resources: {kinds: [Pod]}}]}, validate: {pattern: {spec: {x: 1}}}}
`
	f, ds := policy.Parse("p.yaml", []byte(text))
	var got []string
	for _, p := range f.Policies {
		got = append(got, fmt.Sprint(p.Name, " ", p.Invalid))
		for _, r := range p.Rules {
			got = append(got, fmt.Sprint("  ", r.Name, " ", r.Index, " ", r.Invalid))
		}
	}
	want := []string{
		"p false", "  good 0 false", "  bad 1 true", "  merged 2 true", "   3 true",
		"q true", "  good 0 true",
		"s false", "  good 0 true",
		"t false", "  good 0 false",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s\n%v", d, ds)
	}
}
