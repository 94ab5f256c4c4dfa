package incluster

import (
	"testing"

	"github.com/kvap/kvap/policy"
)

// A policy in shadow is read again without its effect: each kind of them as what it is.
func TestWithoutEffect(t *testing.T) {
	const constraints = "  matchConstraints: {resourceRules: [{apiGroups: [''], apiVersions: [v1], operations: [CREATE], resources: [pods]}]}\n"
	for kind, spec := range map[string]string{
		"ValidatingPolicy":           "  validations: [{expression: 'true'}]\n",
		"MutatingPolicy":             "  mutations: []\n",
		"GeneratingPolicy":           "  generate: [{expression: 'true'}]\n",
		"NamespacedGeneratingPolicy": "  generate: [{expression: 'true'}]\n",
	} {
		text := "apiVersion: policies.kyverno.io/v1\nkind: " + kind + "\nmetadata: {name: p}\nspec:\n" + constraints + spec
		f, ds := policy.Parse("p.yaml", withoutEffect([]byte(text)))
		if ds.HasErrors() || len(f.Policies) != 1 || f.Policies[0].FailurePolicy != policy.Ignore {
			t.Errorf("%s: %v", kind, ds)
		}
	}
}
