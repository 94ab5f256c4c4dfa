package judge

import (
	"testing"

	"github.com/kvap/kvap/compile"
	"github.com/kvap/kvap/policy"
)

// TestReadsUser: a rule reads who acts by the request, and not by what another rule of its policy
// reads, or by a field of that name.
func TestReadsUser(t *testing.T) {
	t.Parallel()
	f, found := policy.Parse("p.yaml", []byte(`
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: p}
spec:
  background: false
  rules:
  - name: "yes"
    match: {any: [{resources: {kinds: [Service]}}]}
    context: [{name: who, variable: {jmesPath: request.userInfo.username}}]
    validate: {message: m, deny: {conditions: {any: [{key: "{{ who }}", operator: Equals, value: a}]}}}
  - name: "no"
    match: {any: [{resources: {kinds: [ConfigMap]}}]}
    validate: {message: userInfo, pattern: {data: {serviceAccountName: "?*", userInfo: "?*"}}}
`))
	if found.HasErrors() {
		t.Fatal(found)
	}
	p := f.Policies[0]
	for _, r := range p.Rules {
		if got := readsUser(&compile.Rule{Policy: p, Source: r}); got != (r.Name == "yes") {
			t.Errorf("%s: reads who acts: %v", r.Name, got)
		}
	}
}
