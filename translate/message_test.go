package translate_test

import (
	"fmt"
	"testing"
)

// onePod is a policy of one rule for Pods that are created.
func onePod(message, body string) string {
	return fmt.Sprintf(`apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: p}
spec:
  validationFailureAction: Enforce
  rules:
  - name: r
    match: {any: [{resources: {kinds: [Pod], operations: [CREATE]}}]}
    validate:
      message: '%s'
      %s
`, message, body)
}

// TestMessageOfVariablesAlone: a message that is nothing but variables is a text to the API
// server too, which takes no message expression of unknown type.
func TestMessageOfVariablesAlone(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ message, want string }{
		{"{{ request.object.metadata.name }}", "web"},
		{"{{ request.object.metadata.name }}{{ request.object.metadata.namespace }}", "webapp"},
	} {
		p := translateText(t, onePod(tt.message, `pattern: {metadata: {labels: {team: "?*"}}}`), setting{})
		if p.targets() != "native" {
			t.Errorf("%s: %s: %v", tt.message, p.targets(), p.result.Diagnostics)
			continue
		}
		p.try(t, []trial{{name: tt.message, object: pod("", containers("containers", "")), want: "deny refused: " + tt.want}})
	}
}
