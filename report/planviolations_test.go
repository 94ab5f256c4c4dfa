package report

import (
	"strings"
	"testing"

	"github.com/kvap/kvap/report/doc"
)

// Of objects that may not be read nobody knows whether they violate a policy: that is not 0.
func TestViolatedIsNotKnown(t *testing.T) {
	p := PlannedPolicy{Name: "p", Rules: []PlannedRule{{Rule: "r", Target: Native, Violations: &Violations{Unread: true}}}}
	if got := p.violated(); got != "?" {
		t.Errorf("nothing was read: %s", got)
	}
	p.Rules[0].Violations.Count = 2
	if got := p.violated(); got != "2 or more" {
		t.Errorf("some were read: %s", got)
	}
	plan := NewPlan([]PlannedPolicy{p}, nil)
	plan.Looked = &Looked{}
	var out strings.Builder
	if err := plan.Document().Write(&out, doc.Options{}); err != nil || !strings.Contains(out.String(), "unknown for objects that you may not read") {
		t.Errorf("%v\n%s", err, out.String())
	}
}
