package policy_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kvap/kvap/policy"
)

// An exception that does what it says is noted, with what it is from; one that is from
// nothing, or is from a policy of the other language, is not.
func TestExcepted(t *testing.T) {
	const exceptions = `
---
apiVersion: kyverno.io/v2
kind: PolicyException
metadata: {name: good, namespace: shop}
spec: {exceptions: [{policyName: shop/teams, ruleNames: [team]}], match: {any: [{resources: {kinds: [Pod]}}]}}
---
apiVersion: kyverno.io/v2
kind: PolicyException
metadata: {name: idle, namespace: shop}
spec: {exceptions: [{policyName: native, ruleNames: [native]}], match: {any: [{resources: {kinds: [Pod]}}]}}
---
apiVersion: policies.kyverno.io/v1
kind: PolicyException
metadata: {name: cel, namespace: shop}
spec: {policyRefs: [{kind: ValidatingPolicy, name: native}, {kind: ValidatingPolicy, name: owners}]}
`
	f, ds := policy.Parse("p.yaml", []byte(strings.Split(excepted, "---\napiVersion: kyverno.io/v2")[0]+exceptions))
	if ds.HasErrors() {
		t.Fatal(ds)
	}
	var got []string
	for _, d := range policy.Excepted(f.Policies, f.Exceptions) {
		got = append(got, d.Message)
	}
	if d := cmp.Diff([]string{"the exception good is from shop/teams; it is part of what is made of that", "the exception cel is from native; it is part of what is made of that"}, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

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
