package translate_test

import (
	"fmt"
	"testing"
)

func configMapWith(data string) string {
	return fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c","namespace":"app"},"data":%s}`, data)
}

// aboutConfigMaps is a policy with one rule about ConfigMaps.
func aboutConfigMaps(rest string) string {
	return `
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: p}
spec:
  validationFailureAction: Enforce
  rules:
    - name: r
      match: {any: [{resources: {kinds: [ConfigMap]}}]}
` + rest
}

func excepting(conditions string) string {
	return `
---
apiVersion: kyverno.io/v2
kind: PolicyException
metadata: {name: e, namespace: x}
spec:
  exceptions: [{policyName: p, ruleNames: [r]}]
  match: {any: [{resources: {kinds: [ConfigMap]}}]}
  conditions: ` + conditions
}

// What an exception asks of the old object or the operation differs between
// operations that the rule itself treats alike.
func TestExceptionsThatAskForTheOperation(t *testing.T) {
	t.Parallel()
	const rule = `      validate: {allowExistingViolations: false, deny: {conditions: {all: [{key: "{{ request.object.data.a || '' }}", operator: Equals, value: bad}]}}}`
	p := translateText(t, aboutConfigMaps(rule)+excepting(`{any: [{key: "{{ request.oldObject.data.a || '' }}", operator: Equals, value: was}]}`), setting{})
	p.try(t, []trial{
		{name: "created", object: configMapWith(`{"a":"bad"}`), want: "deny refused"},
		{name: "updated", operation: "UPDATE", object: configMapWith(`{"a":"bad"}`), old: configMapWith(`{"a":"other"}`), want: "deny refused"},
		{name: "excepted", operation: "UPDATE", object: configMapWith(`{"a":"bad"}`), old: configMapWith(`{"a":"was"}`), want: "nomatch"},
	})
}

// Match conditions know neither variables nor the namespace, so preconditions and
// exceptions that ask for them stay with the validations.
func TestConditionsThatMatchConditionsCannotAsk(t *testing.T) {
	t.Parallel()
	const entry = `      context: [{name: ns, apiCall: {urlPath: "/api/v1/namespaces/{{ request.namespace }}", jmesPath: "metadata.labels.env || 'none'"%s}}]
`
	const asks = `{all: [{key: "{{ ns }}", operator: Equals, value: none}]}`
	withDefault, without := fmt.Sprintf(entry, `, default: unknown`), fmt.Sprintf(entry, "")
	for _, tt := range []struct{ name, policy, want string }{
		{"precondition with a default", aboutConfigMaps(withDefault + "      preconditions: " + asks + "\n      validate: {deny: {}}"), "allow"},
		{"precondition", aboutConfigMaps(without + "      preconditions: " + asks + "\n      validate: {deny: {}}"), "deny refused"},
		{"exception with a default", aboutConfigMaps(withDefault+"      validate: {deny: {}}") + excepting(asks), "deny refused"},
		{"exception", aboutConfigMaps(without+"      validate: {deny: {}}") + excepting(asks), "deny refused"},
	} {
		p := translateText(t, tt.policy, setting{})
		// the namespaces of this test are known by their labels only, so the call fails
		p.try(t, []trial{{name: tt.name, object: configMapWith(`{"a":"b"}`), want: tt.want}})
	}
}

// In the conditions of an exception, a text of the request is a pattern where that
// makes fewer of them true (deviation 9).
func TestWildcardsOfTheRequestInExceptions(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ operator, data, want string }{
		{"AnyIn", "good", "nomatch"},
		{"AnyIn", "*", "deny refused"},
		{"AnyNotIn", "bad", "nomatch"},
		{"AnyNotIn", "*", "deny refused"},
	} {
		asks := fmt.Sprintf("{any: [{key: \"{{ request.object.data.a || '' }}\", operator: %s, value: [good]}]}", tt.operator)
		p := translateText(t, aboutConfigMaps("      validate: {deny: {}}")+excepting(asks), setting{})
		p.try(t, []trial{{name: tt.operator + " " + tt.data, object: configMapWith(fmt.Sprintf(`{"a":%q}`, tt.data)), want: tt.want}})
	}
}
