//go:build e2e

package webhook

import (
	"fmt"
	"strings"
	"testing"

	"github.com/kvap/kvap/test/e2e/testcluster"
)

// Whoever may make policies in a namespace cannot keep those of others from being enforced by
// how large his are.
func TestLargePoliciesOfANamespace(t *testing.T) {
	shared.Namespace(t, "stream", nil)
	shared.Namespace(t, "large", nil)
	shared.unregister(t)
	shared.start(t, "")
	for _, name := range []string{"one", "two"} {
		var conditions strings.Builder
		for i := range 10 {
			fmt.Fprintf(&conditions, "    - {name: c%d, expression: \"request.name != '%s'\"}\n", i, strings.Repeat("x", 80_000))
		}
		shared.Apply(t, `apiVersion: kvap.dev/v1alpha1
kind: Policy
metadata: {name: `+name+`, namespace: large}
spec:
  webhookConfiguration:
    matchConditions:
`+conditions.String()+`  rules:
  - name: r
    match: {any: [{resources: {kinds: [ConfigMap]}}]}
    context: [{name: all, apiCall: {urlPath: /api/v1/namespaces/large/configmaps}}]
    validate: {failureAction: Enforce, message: m, deny: {conditions: {any: [{key: "{{ all.items | length(@) }}", operator: GreaterThan, value: 100}]}}}
`)
	}
	shared.Apply(t, guarded)
	shared.denied(t, unowned)
	testcluster.Soon(t, "the policy of the cluster is ready", func() bool { return shared.says(t, "guarded", "Ready") })
}
