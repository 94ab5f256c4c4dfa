package report_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/kvap/kvap/report"
	"github.com/kvap/kvap/report/doc"
)

// A list that is too long to be counted by eye ends with a count.
func TestStatusCount(t *testing.T) {
	for n, want := range map[int]bool{20: false, 21: true} {
		var s report.Status
		for i := range n {
			p := report.PolicyStatus{Name: fmt.Sprint("p", i), Kind: "ClusterPolicy"}
			if i > 0 {
				p.Conditions = []report.Condition{{Type: "Ready", Status: "True"}}
			}
			s.Policies = append(s.Policies, p)
		}
		var out strings.Builder
		if err := s.Document(time.Now(), false).Write(&out, doc.Options{}); err != nil {
			t.Fatal(err)
		}
		if got := strings.Contains(out.String(), fmt.Sprintf("\n%d policies, of which %d are ready\n", n, n-1)); got != want {
			t.Errorf("of %d: %t\n%s", n, got, out.String())
		}
	}
}
