package report

import (
	"strings"
	"testing"

	"github.com/kvap/kvap/report/doc"
)

func aComparison() Comparison {
	return NewComparison([]ComparedRule{
		{Policy: "a", Rule: "one", Target: Native, Evidence: []Evidence{{Source: "objects", Seen: 3, Agreed: 3, Violated: 1}, {Source: "verify", Seen: 9, Agreed: 9, Violated: 4}}},
		{Policy: "a", Rule: "two", Target: Native, Evidence: []Evidence{{Source: "requests", Seen: 2, Agreed: 1, Disagreed: 1, Violated: 1, Unclear: 4}},
			Disagreements: []Disagreement{{Source: "requests", Subject: "CREATE Pod/x|y", At: "r.jsonl:3", Sides: []Voice{
				{Who: "native policy", Says: "allow"}, {Who: "Kyverno's rule, interpreted", Says: "fail", Message: "no\nteam <b>"},
			}}},
			Notes: []string{"requests, not compared: the bindings leave out the namespace (4)"}},
		{Policy: "n/b", Rule: "three", Target: Webhook, Thin: []string{"no source said anything of this rule"}},
		{Policy: "c", Rule: "four", Target: Native, Evidence: []Evidence{{Source: "objects", Seen: 1, Agreed: 1}}, Thin: []string{"nothing has violated it"}},
		{Policy: "n/d", Rule: "five", Target: Webhook, Thin: []string{"no source said anything of this rule"}},
	})
}

func TestComparisonTable(t *testing.T) {
	var b strings.Builder
	if err := aComparison().Document().Write(&b, doc.Options{}); err != nil {
		t.Fatal(err)
	}
	want := `POLICY  RULE   JUDGED   SEEN  AGREED  DISAGREED  VIOLATED  UNCLEAR  RESULT        EVIDENCE
a       one    native   12    12      0          5         0        agree         objects 3, verify 9
a       two    native   2     1       1          1         4        DISAGREE      requests 2
n/b     three  webhook  0     0       0          0         0        not compared  -
c       four   native   1     1       0          0         0        agree; thin   objects 1
n/d     five   webhook  0     0       0          0         0        not compared  -
a/two: requests, not compared: the bindings leave out the namespace (4)
n/b/three, n/d/five: no source said anything of this rule
c/four: nothing has violated it

DISAGREE: a/two on CREATE Pod/x|y (requests, r.jsonl:3)
  native policy: allow
  Kyverno's rule, interpreted: fail: no
    team <b>

3 rules compared on 15 observations: 1 agree, 1 agree on thin evidence, 1 disagree; no evidence for 2 rules
`
	if got := b.String(); got != want {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
}

// What users wrote is no markup.
func TestComparisonMarkdown(t *testing.T) {
	var b strings.Builder
	if err := aComparison().Document().Write(&b, doc.Options{Format: "markdown"}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"| a | two | native | 2 | 1 | 1 |", "&lt;b>", "## Disagreements", "## What the evidence lacks", "no team"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("%q is not in\n%s", want, b.String())
		}
	}
}

func TestComparisonJSON(t *testing.T) {
	var b strings.Builder
	if err := NewComparison([]ComparedRule{{Policy: "a", Rule: "b", Target: Native}}).Document().Write(&b, doc.Options{Format: "json"}); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(b.String(), "null") {
		t.Errorf("a list is null:\n%s", b.String())
	}
}
