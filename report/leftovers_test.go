package report_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/kvap/kvap/report"
	"github.com/kvap/kvap/report/doc"
)

func TestLeftovers(t *testing.T) {
	some := report.Leftovers{Native: []report.StayingPolicy{{"kvap-pods-deny", "Deny"}, {"kvap-a", "Audit, Warn"}}, Ending: []string{"looks.clusterpolicies.kvap.dev"}}
	for _, tt := range []struct {
		left  report.Leftovers
		wants []string
		not   string
	}{
		{report.Leftovers{}, []string{"nothing stays in force without it.\n"}, "kubectl"},
		{report.Leftovers{Ending: some.Ending}, []string{"nothing stays", "The webhook ends", "\n  looks.clusterpolicies.kvap.dev\n"}, "POLICY"},
		{some, []string{
			"updates them then:\n\nPOLICY          ACTION\nkvap-pods-deny  Deny\nkvap-a          Audit, Warn\n\nTo have them go too",
			"-l app.kubernetes.io/managed-by=kvap-controller\n", "Nobody judges", "\n  looks.clusterpolicies.kvap.dev\n",
		}, "nothing stays"},
	} {
		var b bytes.Buffer
		if err := tt.left.Document().Write(&b, doc.Options{}); err != nil {
			t.Fatal(err)
		}
		for _, want := range tt.wants {
			if !strings.Contains(b.String(), want) {
				t.Errorf("%+v lacks %q:\n%s", tt.left, want, b.String())
			}
		}
		if strings.Contains(b.String(), tt.not) {
			t.Errorf("%+v has %q:\n%s", tt.left, tt.not, b.String())
		}
	}
}
