package translate_test

import (
	"testing"

	"github.com/kvap/kvap/translate"
)

// An int-or-string is the same as a text or a number of another field.
func TestIntOrStringAgrees(t *testing.T) {
	t.Parallel()
	const strategy = "request.object.spec.strategy"
	const some = `[{}, {strategy: {type: "10%", rollingUpdate: {maxSurge: "10%"}}}, {strategy: {type: "10%", rollingUpdate: {maxSurge: "20%"}}},
		{replicas: 3, strategy: {type: "3", rollingUpdate: {maxSurge: 3}}}, {replicas: 3, strategy: {type: "3", rollingUpdate: {maxSurge: "3"}}},
		{replicas: 4, strategy: {type: a, rollingUpdate: {maxSurge: 3}}}]`
	options := translate.Options{Release: 34, Schemas: builtin(t, 34)}
	for _, operator := range []string{"AnyIn", "AllIn", "AnyNotIn", "AllNotIn"} {
		for _, other := range []string{strategy + ".type", "request.object.spec.replicas"} {
			s := sample{"", "apps/v1", "Deployment", `validate: {allowExistingViolations: false, deny: {conditions: {any: [
				{key: "{{ ` + strategy + `.rollingUpdate.maxSurge }}", operator: ` + operator + `, value: ["{{ ` + other + ` }}", b]}]}}}`, some}
			t.Run(operator+" "+other, func(t *testing.T) { s.agree(t, options) })
		}
	}
	for _, operator := range []string{"==", "!="} {
		s := sample{"", "apps/v1", "Deployment", `validate: {allowExistingViolations: false, deny: {conditions: {any: [
			{key: "{{ ` + strategy + `.rollingUpdate.maxSurge ` + operator + ` ` + strategy + `.type }}", operator: Equals, value: true}]}}}`, some}
		t.Run("a text, "+operator, func(t *testing.T) { s.agree(t, options) })
	}
}
