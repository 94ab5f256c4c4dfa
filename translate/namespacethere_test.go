package translate_test

import (
	"fmt"
	"strings"
	"testing"
)

// TestNamespaceIsThere: the API server writes the namespace of the request into the object before
// it asks, of what lives in one. So nothing asks whether it is there, and no object is made for
// deletions, of which the rule denies none. Where the scope is not known, it is asked for.
func TestNamespaceIsThere(t *testing.T) {
	t.Parallel()
	for kind, there := range map[string]bool{"ConfigMap": true, "apps/v1/Deployment": true, "unheard.io/v1/Thing": false} {
		p := translateText(t, fmt.Sprintf(`apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: p}
spec:
  background: false
  rules:
  - name: r
    match: {any: [{resources: {kinds: [%s]}}]}
    preconditions: {all: [{key: "{{ request.object.metadata.namespace }}", operator: AnyIn, value: [a, b]}]}
    validate:
      failureAction: Enforce
      message: m
      deny: {conditions: {all: [{key: "{{ request.operation }}", operator: Equals, value: CREATE}]}}
`, kind), setting{})
		if got := len(p.result.Objects) == 1; got != there {
			t.Errorf("%s: %d objects", kind, len(p.result.Objects))
		}
		for _, o := range p.result.Objects {
			if text := fmt.Sprint(o.Policy.Spec.MatchConditions); there && strings.Contains(text, "?") {
				t.Errorf("%s: %s", kind, text)
			}
		}
	}
}
