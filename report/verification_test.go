package report

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kvap/kvap/report/doc"
)

func verification() Verification {
	return NewVerification(7, []VerifiedPolicy{{
		Name: "limits", Kind: "Policy", Namespace: "app", File: "p.yaml", Requests: 20, Refused: []string{"p: spec.validations[0]: too long"},
		Rules: []VerifiedRule{
			{
				Rule: "memory", Target: "native", Matched: 9, Verdicts: map[string]int{"pass": 4, "fail": 5}, Predicates: 3, BothWays: 1,
				Unseen: []UnseenPredicate{{At: "", Holds: true}, {At: "/spec/x/"}},
				Counterexample: &CounterexampleForm{
					Tried: 12, Native: "allow", Interp: "fail", InterpMessage: "no limit\nof memory", Summary: "CREATE pods a in app by alice",
					Object: map[string]any{"kind": "Pod"}, Line: json.RawMessage(`{"request":{"operation":"CREATE"}}`),
				},
			},
			{Rule: "lenient", Target: "native", Matched: 3, Verdicts: map[string]int{"pass": 3}, Predicates: 1, BothWays: 1, Unseen: []UnseenPredicate{}},
			{Rule: "narrow", Target: "native", Verdicts: map[string]int{}, Predicates: 1, Unseen: []UnseenPredicate{}},
			{Rule: "roles", Target: "webhook", Verdicts: map[string]int{}, Unseen: []UnseenPredicate{}},
		},
	}, {Name: "cel", Kind: "ValidatingPolicy", Rules: []VerifiedRule{}, Refused: []string{}}})
}

func TestVerificationText(t *testing.T) {
	var got bytes.Buffer
	if err := verification().Document(true).Write(&got, doc.Options{}); err != nil {
		t.Fatal(err)
	}
	want := `POLICY      RULE     REQUESTS  MATCHED  PASS  FAIL  SKIP  ERROR  PREDICATES  RESULT
app/limits  memory   20        9        4     5     0     0      1/3         DISAGREE
app/limits  lenient  20        3        3     0     0     0      1/1         agree; thin: never failed
app/limits  narrow   20        0        0     0     0     0      0/1         not compared: never matched
app/limits  roles    -         -        -     -     -     -      -           webhook
cel         -        -         -        -     -     -     -      -           nothing to compare

app/limits/memory: native allow, interpreter fail, found by request 12
  interpreter: no limit
    of memory
  request: CREATE pods a in app by alice
  object:
    kind: Pod
  for kvap eval --requests: {"request":{"operation":"CREATE"}}

app/limits/memory: the rule's match: never seen to fail
app/limits/memory: /spec/x/: never seen
app/limits: an API server refuses the translation: p: spec.validations[0]: too long

2 policies, 4 rules: 3 native, 20 requests, 1 disagreement, 2 not compared (1 never matched), 1 on thin evidence, 1 refused
`
	if d := cmp.Diff(want, got.String()); d != "" {
		t.Errorf("text (-want +got):\n%s", d)
	}
}

func TestVerificationJSON(t *testing.T) {
	var got bytes.Buffer
	if err := verification().Document(false).Write(&got, doc.Options{Format: "json"}); err != nil {
		t.Fatal(err)
	}
	var back struct {
		Seed     int
		Policies []struct {
			Rules []struct {
				Rule           string
				Unseen         []any
				Counterexample *struct{ Line map[string]any }
			}
			Refused []string
		}
		Totals map[string]int
	}
	if err := json.Unmarshal(got.Bytes(), &back); err != nil {
		t.Fatal(err)
	}
	wantTotals := map[string]int{"policies": 2, "rules": 4, "native": 3, "requests": 20, "disagreeing": 1, "refused": 1, "unsearchable": 0, "notCompared": 2, "neverMatched": 1, "thin": 1}
	if d := cmp.Diff(wantTotals, back.Totals); d != "" {
		t.Errorf("totals (-want +got):\n%s", d)
	}
	first := back.Policies[0].Rules[0]
	if back.Seed != 7 || first.Counterexample == nil || first.Counterexample.Line["request"] == nil || len(first.Unseen) != 2 {
		t.Errorf("%s", got.String())
	}
	if back.Policies[1].Refused == nil || back.Policies[0].Rules[3].Unseen == nil {
		t.Error("a list is null")
	}
}

// Evidence is thin by one predicate, or by several.
func TestThin(t *testing.T) {
	for seen, want := range map[int]string{3: "", 2: "1 predicate not seen both ways", 1: "2 predicates not seen both ways"} {
		r := VerifiedRule{Verdicts: map[string]int{"pass": 1, "fail": 1}, Predicates: 3, BothWays: seen}
		if got := r.thin(); got != want {
			t.Errorf("%d of 3: %q, want %q", seen, got, want)
		}
	}
}
