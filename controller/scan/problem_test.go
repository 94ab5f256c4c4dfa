package scan

import (
	"testing"

	"github.com/kvap/kvap/compile"
)

// What is to be said of rules is not known before they are scanned.
func TestProblemOfWhatIsNotScanned(t *testing.T) {
	old, added := &compile.Rule{}, &compile.Rule{}
	s := &Scanner{}
	s.problems.each = []*problem{{kindScan: kindScan{rules: []*compile.Rule{old}}}}
	s.problems.of = []*compile.Rule{old}
	is := func(when string, rule *compile.Rule, want bool) {
		t.Helper()
		if _, known := s.Problem([]*compile.Rule{rule}); known != want {
			t.Errorf("%s: known is %t", when, known)
		}
	}
	is("before its objects are judged", old, false)
	s.problems.finish(resource{})
	is("once they are", old, true)
	is("of a rule that no scan has", added, false)
	s.problems.forget()
	is("when another replica leads", old, false)
}
