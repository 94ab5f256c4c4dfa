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
		replace              [2]string
		verdict              interp.Status
		operation            string
		there                bool
		agreed, dis, unclear int
	}{
		"both admit":             {verdict: interp.Pass, there: true, agreed: 1},
		"it does not apply":      {verdict: interp.Skip, there: true, agreed: 1},
		"it is gone":             {verdict: interp.Pass},
		"Kyverno admitted":       {verdict: interp.Fail, there: true, dis: 1},
		"Kyverno denied, or not": {verdict: interp.Fail, unclear: 1},
		"it errs":                {verdict: interp.Error, there: true, dis: 1},
		"it errs and may":        {replace: [2]string{"spec:", "spec:\n  failurePolicy: Ignore"}, verdict: interp.Error, there: true, unclear: 1},
		"it errs and asks":       {replace: [2]string{"    validate:", "    context: [{name: g, globalReference: {name: g}}]\n    validate:"}, verdict: interp.Error, there: true, unclear: 1},
		"it asks":                {replace: [2]string{"    validate:", "    context: [{name: g, apiCall: {urlPath: /version}}]\n    validate:"}, verdict: interp.Fail, there: true, unclear: 1},
		"only audited":           {replace: [2]string{"Action: Enforce", "Action: Audit"}, verdict: interp.Fail, there: true, unclear: 1},
		"an update":              {verdict: interp.Fail, operation: "UPDATE", there: true},
	} {
		text := teams
		if one.replace[0] != "" {
			text = strings.Replace(text, one.replace[0], one.replace[1], 1)
		}
		l := New(newBench(t, text, nil).judges, Options{})
		operation := one.operation
		if operation == "" {
			operation = "CREATE"
		}
		found := Rehearsal{Policy: "teams", Rule: "team", Passed: 7, Failed: 1, Requests: []Rehearsed{
			{At: time.Unix(0, 0), Operation: operation, Object: "ConfigMap/a/b", UID: "u", Verdict: one.verdict, Message: "because"},
		}}
		l.Shadow(found, map[string]bool{"u": one.there})
		row := l.Comparison().Rules[0]
		total := row.Total()
		if total.Agreed != one.agreed || total.Disagreed != one.dis || total.Unclear != one.unclear || len(row.Disagreements) != one.dis {
			t.Errorf("%s: %+v", name, row)
		}
		if notes := strings.Join(row.Notes, "\n"); !strings.Contains(notes, "judged 7 requests by it, and found a violation in none; it could not judge 1") {
			t.Errorf("%s: %s", name, notes)
		}
		l.Forget()
		if got := l.Comparison().Rules[0]; got.Total().Seen > 0 || len(got.Notes) > 0 {
			t.Errorf("%s: another look counts again: %+v", name, got)
		}
	}
}

// A rule that asks the cluster errs where it is judged without one, and so does one that reads a
// ConfigMap of which nobody knows the name before the request. That is held against nobody.
func TestReportOfWhatAsks(t *testing.T) {
	before, _, _ := strings.Cut(teams, "    validate:\n")
	for _, entry := range []string{
		"apiCall: {urlPath: /api/v1/namespaces/default, jmesPath: metadata.name}",
		`configMap: {namespace: default, name: "of-{{ request.object.metadata.name }}"}`,
	} {
		b := newBench(t, before+`    context: [{name: here, `+entry+`}]
    validate:
      message: a ConfigMap is elsewhere
      deny: {conditions: {all: [{key: "{{ here }}", operator: Equals, value: x}]}}
`, nil)
		l, register := b.ledger(), Register{}
		o := aConfigMap("bad")
		register.Add(map[string]any{
			"apiVersion": "wgpolicyk8s.io/v1alpha2", "kind": "PolicyReport", "metadata": map[string]any{"namespace": "default"},
			"scope":   map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "name": "bad", "namespace": "default"},
			"results": []any{map[string]any{"source": "kyverno", "policy": "teams", "rule": "team", "result": "pass"}},
		})
		b.judge(l, Objects, register, o)
		if got := l.Comparison().Rules[0]; got.Total().Disagreed > 0 || !strings.Contains(strings.Join(got.Notes, "\n"), notAtHand) {
			t.Errorf("%s: %+v", entry, got)
		}
	}
}
