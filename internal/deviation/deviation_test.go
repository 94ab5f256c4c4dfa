package deviation_test

import (
	"encoding/json"
	"testing"

	"github.com/kvap/kvap/internal/deviation"
	"github.com/kvap/kvap/policy"
)

func data(t *testing.T, text string) (v any) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatal(err)
	}
	return v
}

// rule reads the body of a validate rule, in YAML on one line.
func rule(t *testing.T, body string) *policy.Rule {
	t.Helper()
	f, found := policy.Parse("p.yaml", []byte(`apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: p}
spec:
  rules:
  - name: r
    match: {any: [{resources: {kinds: [Pod]}}]}
    validate: `+body+"\n"))
	if len(found) > 0 {
		t.Fatal(found)
	}
	return f.Policies[0].Rules[0]
}

func TestDeviations(t *testing.T) {
	annotations := func(text string) string { return `{"metadata":{"annotations":{` + text + `}}}` }
	const (
		wild     = `{message: m, pattern: {metadata: {=(annotations): {X(a/*): "?*"}}}}`
		number   = `{message: m, pattern: {metadata: {labels: {a: true}}}}`
		text     = `{message: m, pattern: {metadata: {labels: {a: "true"}}}}`
		member   = `{message: m, deny: {conditions: {any: [{key: "{{ request.object.rules[].verbs[] }}", operator: AnyNotIn, value: [bind]}]}}}`
		security = `{podSecurity: {level: baseline}}`
		nested   = `{message: m, foreach: [{list: request.object.rules, deny: {conditions: {any: [{key: "{{ element.verbs }}", operator: AnyNotIn, value: [bind]}]}}}]}`
	)
	for _, tt := range []struct {
		name, body, op, object, old, want, said string
		number                                  int // 0 where nothing excuses
	}{
		{"another key of the wildcard", wild, "UPDATE", annotations(`"a/x":""`), annotations(`"a/y":""`), "fail", "allow", 3},
		{"the same key", wild, "UPDATE", annotations(`"a/x":""`), annotations(`"a/x":""`), "fail", "allow", 0},
		{"no key before", wild, "UPDATE", annotations(`"a/x":""`), annotations(`"b":""`), "fail", "allow", 0},
		{"a new object", wild, "CREATE", annotations(`"a/x":""`), "null", "fail", "allow", 0},
		{"the other way round", wild, "UPDATE", annotations(`"a/x":""`), annotations(`"a/y":""`), "pass", "deny", 0},
		{"no string is wanted", number, "CREATE", annotations(""), "null", "pass", "deny", 3},
		{"a string is wanted", text, "CREATE", annotations(""), "null", "pass", "deny", 0},
		{"a pattern on DELETE", text, "DELETE", "null", annotations(""), "error", "nomatch", 12},
		{"its preconditions", text, "DELETE", "null", annotations(""), "skip", "none", 12},
		{"pod security", security, "DELETE", "null", annotations(""), "error", "nomatch", 12},
		{"a pattern on CREATE", text, "CREATE", annotations(""), "null", "error", "nomatch", 0},
		{"conditions on DELETE", member, "DELETE", "null", annotations(""), "error", "nomatch", 0},
		{"a loop on DELETE", nested, "DELETE", "null", annotations(""), "error", "nomatch", 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, _ := deviation.Of(deviation.Difference{
				Rule: rule(t, tt.body), Operation: tt.op, Object: data(t, tt.object), Before: data(t, tt.old), Want: tt.want, Said: tt.said,
			})
			if got.Number != tt.number {
				t.Errorf("got %d (%s), want %d", got.Number, got.Reason, tt.number)
			}
		})
	}
}
