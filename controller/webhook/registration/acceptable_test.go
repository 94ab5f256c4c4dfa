package registration

import (
	"fmt"
	"strings"
	"testing"

	"github.com/kvap/kvap/policy"
)

// The API server refuses a configuration as a whole. A policy with match conditions
// that it would refuse, which anybody with a namespace may write, leaves the others
// in place.
func TestUnacceptableConditions(t *testing.T) {
	text := func(name, conditions string) string {
		return fmt.Sprintf(`
---
apiVersion: kyverno.io/v1
kind: Policy
metadata: {name: %s, namespace: team}
spec:
  webhookConfiguration: {matchConditions: [%s]}
  rules: [{name: r, match: {any: [{resources: {kinds: [Pod]}}]}, validate: {failureAction: Enforce, message: m, pattern: {metadata: {name: "?*"}}}}]
`, name, conditions)
	}
	var many []string
	for i := range 70 {
		many = append(many, fmt.Sprintf("{name: c%d, expression: 'true'}", i))
	}
	f, ds := policy.Parse("p.yaml", []byte(text("good", "{name: a, expression: 'request.operation == \"CREATE\"'}")+
		text("syntax", "{name: a, expression: 'object.('}")+
		text("type", "{name: a, expression: '1 + 1'}")+
		text("variable", "{name: a, expression: 'variables.a == 1'}")+
		text("name", "{name: 'a b', expression: 'true'}")+
		text("twice", "{name: a, expression: 'true'}, {name: a, expression: 'true'}")+
		text("ours", "{name: kvap.dev/not-machinery, expression: 'true'}")+
		text("sources", "{name: kvap.dev/not-deleted-policies, expression: 'true'}")+
		text("many", strings.Join(many, ", "))))
	if ds.HasErrors() {
		t.Fatal(ds)
	}
	objects, problems := Configure(f.Policies, kinds(t), options())
	if entries := objects.Validating.Webhooks; len(entries) != 1 || !strings.Contains(fmt.Sprint(entries[0].MatchConditions), "CREATE") {
		t.Errorf("entries: %v", entries)
	}
	if len(problems) != 8 {
		t.Errorf("problems: %v", problems)
	}
	for _, p := range problems {
		if !p.Refused {
			t.Errorf("%v is not refused", p)
		}
	}
}
