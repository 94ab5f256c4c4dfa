package compare

import (
	"testing"

	"github.com/kvap/kvap/report"
)

// A comparison speaks for a policy only where it saw something of all that leaves Kyverno.
func TestCleanComparison(t *testing.T) {
	seen := []report.Evidence{{Source: "objects", Seen: 2, Agreed: 2}}
	for name, one := range map[string]struct {
		rules []report.ComparedRule
		want  bool
	}{
		"all seen":         {[]report.ComparedRule{{Target: report.Native, Evidence: seen}, {Target: report.Webhook, Evidence: seen}}, true},
		"one never seen":   {[]report.ComparedRule{{Target: report.Native, Evidence: seen}, {Target: report.Native}}, false},
		"nothing seen":     {[]report.ComparedRule{{Target: report.Native}}, false},
		"one stays":        {[]report.ComparedRule{{Target: report.Native, Evidence: seen}, {Target: report.Unsupported}}, true},
		"one only unclear": {[]report.ComparedRule{{Target: report.Native, Evidence: []report.Evidence{{Source: "audit", Unclear: 9}}}}, false},
		"a disagreement":   {[]report.ComparedRule{{Target: report.Native, Evidence: seen, Disagreements: []report.Disagreement{{}}}}, false},
	} {
		for i := range one.rules {
			one.rules[i].Policy = "p"
		}
		got, ok := comparisonOf(report.NewComparison(one.rules), "p")
		if !ok || got.Clean != one.want {
			t.Errorf("%s: clean %v; want %v", name, got.Clean, one.want)
		}
	}
}
