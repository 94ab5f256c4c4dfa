package verify

import (
	"context"
	"strings"
	"testing"

	"github.com/kvap/kvap/interp"
)

// TestLabelsThatPoliciesAskFor: namespaces and objects have the labels that selectors and
// conditions ask for, and lack them.
func TestLabelsThatPoliciesAskFor(t *testing.T) {
	const classic, expressed = `
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: selected}
spec:
  validationFailureAction: Enforce
  rules:
  - name: selected
    match: {any: [{resources: {kinds: [ConfigMap], MATCH}}]}
    exclude: {any: [{resources: {kinds: [ConfigMap], EXCLUDE}}]}
    validate: {message: wrong, pattern: {data: {ready: "?*"}}}
`, `
apiVersion: policies.kyverno.io/v1
kind: ValidatingPolicy
metadata: {name: selected}
spec:
  matchConstraints:
    MATCH
    resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE, UPDATE], resources: [configmaps]}]
  matchConditions: [{name: selected, expression: 'CONDITION'}]
  validations: [{expression: 'object.?data[?"ready"].orValue("") != ""', message: wrong}]
`
	three := `namespaceSelector: {matchLabels: {acme.io/tenant: north, acme.io/stage: production, acme.io/tier: gold}}`
	for name, policy := range map[string]string{
		"three labels of a namespace": strings.NewReplacer("MATCH", three, "EXCLUDE", "names: [nobody]").Replace(classic),
		"expressions": strings.NewReplacer("MATCH", `namespaceSelector: {matchExpressions: [
			{key: acme.io/tenant, operator: In, values: [north, south]}, {key: acme.io/stage, operator: Exists},
			{key: acme.io/frozen, operator: DoesNotExist}, {key: acme.io/tier, operator: NotIn, values: [gold, silver]}]}`,
			"EXCLUDE", "namespaceSelector: {matchLabels: {acme.io/stage: production, acme.io/own: \"rules-*\"}}").Replace(classic),
		"the name, as a label": strings.NewReplacer("MATCH", `namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: payments-production}}`,
			"EXCLUDE", "names: [nobody]").Replace(classic),
		"labels of an object": strings.NewReplacer("MATCH", `selector: {matchLabels: {acme.io/tenant: north, acme.io/stage: production, acme.io/tier: gold}}`,
			"EXCLUDE", "names: [nobody]").Replace(classic),
		"annotations of an object": strings.NewReplacer("MATCH", `annotations: {acme.io/tenant: north, acme.io/stage: production}`,
			"EXCLUDE", "names: [nobody]").Replace(classic),
		"constraints of a policy in CEL": strings.NewReplacer("MATCH", three, "CONDITION", "true").Replace(expressed),
		"what CEL asks of a namespace": strings.NewReplacer("MATCH", "", "CONDITION",
			`namespaceObject.metadata.?labels[?"acme.io/tenant"].orValue("") == "north" && namespaceObject.metadata.?labels[?"acme.io/stage"].orValue("") == "production"`).Replace(expressed),
		"a condition on its name": strings.NewReplacer("MATCH", "", "CONDITION", `request.namespace == "payments-production"`).Replace(expressed),
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Policy(context.Background(), parsed(t, policy), Options{Setting: seeded(theLab().setting, 1), Requests: 2000})
			if err != nil {
				t.Fatal(err)
			}
			for _, r := range got.Rules {
				if got.Disagree() || !r.Native || r.Verdicts[interp.Pass] < 5 || r.Verdicts[interp.Fail] < 5 || r.Verdicts[interp.None] < 5 {
					t.Errorf("disagree %v, %+v", got.Disagree(), r)
					if c := r.Counterexample; c != nil {
						t.Errorf("native %s (%s), interpreter %s: %s", c.Native, c.NativeMessage, c.Status, c.Request)
					}
				}
			}
		})
	}
}
