package policy_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kvap/kvap/policy"
)

const excepted = `
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: owners}
spec:
  rules:
    - name: owner
      match: {any: [{resources: {kinds: [Pod]}}]}
      validate: {message: m, pattern: {metadata: {labels: {owner: "?*"}}}}
---
apiVersion: kyverno.io/v1
kind: Policy
metadata: {name: teams, namespace: shop}
spec:
  rules:
    - name: team
      match: {any: [{resources: {kinds: [ConfigMap]}}]}
      validate: {message: m, pattern: {metadata: {labels: {team: "?*"}}}}
---
apiVersion: policies.kyverno.io/v1
kind: ValidatingPolicy
metadata: {name: native}
spec:
  matchConstraints: {resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [pods]}]}
  validations: [{expression: "true"}]
---
apiVersion: kyverno.io/v2
kind: PolicyException
metadata: {name: e, namespace: shop}
spec:
  match: {any: [{resources: {kinds: [Pod]}}]}
  exceptions:
`

// An exception that excepts nothing is reported, with the likely mistake.
func TestIdle(t *testing.T) {
	for _, c := range []struct{ ref, want string }{
		{`{policyName: owners, ruleNames: [owner]}`, ``},
		{`{policyName: owners, ruleNames: ["autogen-cronjob-*"]}`, ``},
		{`{policyName: shop/teams, ruleNames: [other, "te?m"]}`, ``},
		{`{policyName: owner, ruleNames: [owner]}`, `the exception e is from the policy "owner", which is not among the input, so it changes nothing; did you mean owners?`},
		{`{policyName: teams, ruleNames: [team]}`, `the exception e is from the policy "teams", which is not among the input, so it changes nothing; a namespaced policy is named with its namespace: shop/teams`},
		{`{policyName: native, ruleNames: ["*"]}`, `the exception e is from the policy "native", which is not among the input, so it changes nothing; give the policy too, or correct the name`},
		{`{policyName: shop/teams, ruleNames: [autogen-team]}`, `the exception e is from the rules autogen-team of shop/teams, which has none of these, so it changes nothing; correct ruleNames`},
	} {
		f, ds := policy.Parse("p.yaml", []byte(excepted+"    - "+c.ref+"\n"))
		if len(ds) > 0 {
			t.Fatal(ds)
		}
		got := ""
		for _, d := range policy.Idle(f.Policies, f.Exceptions) {
			got += d.Message
		}
		if d := cmp.Diff(c.want, got); d != "" {
			t.Errorf("%s (-want +got):\n%s", c.ref, d)
		}
	}
}
