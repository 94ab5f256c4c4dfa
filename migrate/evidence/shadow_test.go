package evidence

import (
	"strings"
	"testing"
	"time"

	"github.com/kvap/kvap/interp"
)

// What the webhook says in shadow is held against what became of the object: where
// Kyverno admitted what the webhook would deny, they disagree; where nobody knows what
// became of it, it says nothing.
func TestShadow(t *testing.T) {
	for name, one := range map[string]struct {
		replace             [2]string
		verdict             interp.Status
		operation           string
		there               bool
		agreed, dis, unkown int
	}{
		"both admit":             {verdict: interp.Pass, there: true, agreed: 1},
		"it does not apply":      {verdict: interp.Skip, there: true, agreed: 1},
		"it is gone":             {verdict: interp.Pass},
		"Kyverno admitted":       {verdict: interp.Fail, there: true, dis: 1},
		"Kyverno denied, or not": {verdict: interp.Fail, unkown: 1},
		"it errs":                {verdict: interp.Error, there: true, dis: 1},
		"it errs and may":        {replace: [2]string{"spec:", "spec:\n  failurePolicy: Ignore"}, verdict: interp.Error, there: true, unkown: 1},
		"only audited":           {replace: [2]string{"Action: Enforce", "Action: Audit"}, verdict: interp.Fail, there: true, unkown: 1},
		"an update":              {verdict: interp.Fail, operation: "UPDATE", there: true},
	} {
		text := teams
		if one.replace[0] != "" {
			text = strings.Replace(text, one.replace[0], one.replace[1], 1)
		}
		l := New(newBench(t, text, nil).judges, nil)
		operation := one.operation
		if operation == "" {
			operation = "CREATE"
		}
		found := Rehearsal{Policy: "teams", Rule: "team", Passed: 7, Failed: 1, Requests: []Rehearsed{
			{At: time.Unix(0, 0), Operation: operation, Object: "ConfigMap/a/b", UID: "u", Verdict: one.verdict, Message: "because"},
		}}
		l.Shadow(found, func(uid string) bool { return uid == "u" && one.there })
		row := l.Comparison().Rules[0]
		total := row.Total()
		if total.Agreed != one.agreed || total.Disagreed != one.dis || total.Unclear != one.unkown || len(row.Disagreements) != one.dis {
			t.Errorf("%s: %+v", name, row)
		}
		if notes := strings.Join(row.Notes, "\n"); !strings.Contains(notes, "found nothing in 7 requests and a violation in 0; it could not judge 1") {
			t.Errorf("%s: %s", name, notes)
		}
		l.Forget()
		if got := l.Comparison().Rules[0]; got.Total().Seen > 0 || len(got.Notes) > 0 {
			t.Errorf("%s: another look counts again: %+v", name, got)
		}
	}
}
