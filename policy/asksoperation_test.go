package policy_test

import (
	"testing"

	"github.com/kvap/kvap/policy"
)

// A rule asks for the operation where an expression reads it, and not where a text
// happens to have the words.
func TestAsksForOperation(t *testing.T) {
	reads := func(expression, _, _ string) bool { return expression == "the operation" }
	for _, tt := range []struct {
		rule string
		want bool
	}{
		{`validate: {deny: {conditions: {all: [{key: "{{ request.operation || 'BACKGROUND' }}", operator: Equals, value: DELETE}]}}}`, true},
		{`validate: {deny: {conditions: {all: [{key: "{{ request | operation }}", operator: Equals, value: DELETE}]}}}`, true},
		{`validate: {deny: {conditions: {all: [{key: "{{ request.[operation][0] }}", operator: Equals, value: DELETE}]}}}`, true},
		{`validate: {deny: {conditions: {all: [{key: "{{ request.object.operation }}", operator: Equals, value: DELETE}]}}}`, false},
		{`validate: {message: "request.operation is not looked at", deny: {}}`, false},
		{`{context: [{name: op, variable: {jmesPath: request.operation}}], validate: {deny: {}}}`, true},
		{`validate: {cel: {expressions: [{expression: the operation}]}}`, true},
		{`validate: {cel: {expressions: [{expression: another}]}}`, false},
	} {
		p, ds := policy.Parse("p.yaml", []byte(`{apiVersion: kyverno.io/v1, kind: ClusterPolicy, metadata: {name: p}, spec: {rules: [`+tt.rule+`]}}`))
		if len(p.Policies) != 1 || len(p.Policies[0].Rules) != 1 {
			t.Fatalf("%s: %v", tt.rule, ds)
		}
		if got := p.Policies[0].Rules[0].AsksForOperation(reads); got != tt.want {
			t.Errorf("%s: got %v", tt.rule, got)
		}
	}
}
