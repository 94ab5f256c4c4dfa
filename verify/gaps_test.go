package verify

import (
	"slices"
	"strings"
	"testing"

	"github.com/kvap/kvap/internal/judge"
	"github.com/kvap/kvap/interp"
	"github.com/kvap/kvap/vap"
)

// A gap is a disagreement that is known and told to the user, or that waits for
// someone to close it. TestAgree passes over them, so that they do not hide others;
// TestGaps sees to it that each still is one.
type gap struct {
	name string
	is   func(o judge.Opinion) bool
	// rule and request are seeds of what shows it.
	rule, request uint64
}

func gaps() []gap {
	return []gap{
		{name: "what Kyverno calls an error of a pattern depends on the order of evaluation, and excuses no old violation", is: func(o judge.Opinion) bool {
			return o.Native == vap.Deny && o.Status == interp.Skip && strings.Contains(o.Message, "pre-existing")
		}, rule: 153, request: 39178},
	}
}

func known(o judge.Opinion) bool {
	return slices.ContainsFunc(gaps(), func(g gap) bool { return g.is(o) })
}

// Each gap is one still: the policy and the request that show it are judged in two
// ways. One that is closed goes from the list; where what makes rules and requests
// has changed, TestAgree names other seeds with -v.
func TestGaps(t *testing.T) {
	l := theLab()
	for _, g := range gaps() {
		tr, err := l.trial(l.source(choose(g.rule)), false)
		if err != nil || tr == nil {
			t.Errorf("%s: the rule has no native form (%v)", g.name, err)
			continue
		}
		opinions, err := tr.judges.Judge(t.Context(), tr.generator.request(choose(g.request)))
		if err != nil {
			t.Fatal(err)
		}
		if !slices.ContainsFunc(opinions, func(o judge.Opinion) bool { return !o.Agree() && g.is(o) }) {
			t.Errorf("%s: both judges agree", g.name)
		}
	}
}
