package interp

import (
	"strings"
	"testing"
)

func exceptionFor(match, rest string) string {
	return `apiVersion: kyverno.io/v2
kind: PolicyException
metadata: {name: e, namespace: ops}
spec:
  background: false
  exceptions: [{policyName: p, ruleNames: ["r*"]}]
  match: {any: [` + match + `]}
` + indent(2, rest) + "\n"
}

func TestExceptions(t *testing.T) {
	const object1 = `{metadata: {name: a, namespace: team}, spec: {x: 2, star: "*"}}`
	const rule = "validate: {pattern: {spec: {x: 1}}}"
	tests := []struct {
		note, rule, exception string
		want                  Status
	}{
		{"matches", rule, exceptionFor(`{resources: {kinds: [Widget], names: [a]}}`, ""), Skip},
		{"another name", rule, exceptionFor(`{resources: {kinds: [Widget], names: [b]}}`, ""), Fail},
		{"operations are ignored", rule, exceptionFor(`{resources: {kinds: [Widget], operations: [DELETE]}}`, ""), Skip},
		{"true conditions", rule, exceptionFor(`{resources: {kinds: [Widget]}}`, `conditions: {all: [{key: "{{ request.object.spec.x }}", operator: Equals, value: 2}]}`), Skip},
		{"false conditions", rule, exceptionFor(`{resources: {kinds: [Widget]}}`, `conditions: {any: [{key: "{{ request.object.spec.x }}", operator: Equals, value: 3}]}`), Fail},
		{"conditions that err", rule, exceptionFor(`{resources: {kinds: [Widget]}}`, `conditions: {any: [{key: "{{ request.object.spec.zz }}", operator: Equals, value: 3}]}`), Fail},
		{"preconditions come first", "preconditions: {all: [{key: a, operator: Equals, value: b}]}\n" + rule, exceptionFor(`{resources: {kinds: [Widget]}}`, ""), Skip},
		{"and so do their errors", "preconditions: {all: [{key: \"{{ zz }}\", operator: Equals, value: b}]}\n" + rule, exceptionFor(`{resources: {kinds: [Widget]}}`, ""), Error},
		{"a wildcard of the request is on no list (deviation 9)", rule, exceptionFor(`{resources: {kinds: [Widget]}}`, `conditions: {any: [{key: "{{ request.object.spec.star }}", operator: AnyIn, value: [a]}]}`), Fail},
		{"but itself", rule, exceptionFor(`{resources: {kinds: [Widget]}}`, `conditions: {any: [{key: "{{ request.object.spec.star }}", operator: AnyIn, value: ["*"]}]}`), Skip},
		{"and off none", rule, exceptionFor(`{resources: {kinds: [Widget]}}`, `conditions: {any: [{key: "{{ request.object.spec.star }}", operator: AnyNotIn, value: [a]}]}`), Fail},
		{"by user", rule, exceptionFor(`{resources: {kinds: [Widget]}, subjects: [{kind: User, name: alice}]}`, ""), Skip},
	}
	for _, tt := range tests {
		t.Run(tt.note, func(t *testing.T) {
			got := judgeOne(t, widgetPolicy(tt.rule)+"---\n"+tt.exception, &Request{Admission: create(object(t, object1))}, nil)
			if got.Status != tt.want {
				t.Errorf("want %s, got %s (%s)", tt.want, got.Status, got.Message)
			}
			if tt.note == "matches" && (got.Message != "rule is skipped due to policy exceptionsops/e" || len(got.Exceptions) != 1 || got.Exceptions[0] != "ops/e") {
				t.Errorf("got %q, %v", got.Message, got.Exceptions)
			}
		})
	}
}

func TestPodSecurityExceptions(t *testing.T) {
	source := widgetPolicy("validate: {podSecurity: {level: baseline}}")
	source = strings.ReplaceAll(source, "Widget", "Pod")
	const violating = `{apiVersion: v1, kind: Pod, metadata: {name: a, namespace: team}, spec: {hostPID: true, containers: [{name: c, image: i, securityContext: {privileged: true}}]}}`
	tests := []struct {
		note, rest, object string
		want               Status
	}{
		{"everything", "", violating, Skip},
		{"one control", `podSecurity: [{controlName: Host Namespaces}]`, violating, Fail},
		{"both controls", `podSecurity: [{controlName: Host Namespaces}, {controlName: Privileged Containers, images: ["*"]}]`, violating, Skip},
		{"the rule passes by itself", `podSecurity: [{controlName: Host Namespaces}]`, `{apiVersion: v1, kind: Pod, metadata: {name: a, namespace: team}, spec: {}}`, Pass},
	}
	for _, tt := range tests {
		t.Run(tt.note, func(t *testing.T) {
			exception := strings.ReplaceAll(exceptionFor(`{resources: {kinds: [Pod]}}`, tt.rest), "\n  \n", "\n")
			got := judgeOne(t, source+"\n---\n"+exception, &Request{Admission: create(object(t, tt.object))}, nil)
			if got.Status != tt.want {
				t.Errorf("want %s, got %s (%s)", tt.want, got.Status, got.Message)
			}
		})
	}
}
