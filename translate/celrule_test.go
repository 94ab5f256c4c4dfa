package translate_test

import (
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
)

const celPolicy = `
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata:
  name: host
  annotations:
    pod-policies.kyverno.io/autogen-controllers: none
spec:
  background: false
  rules:
    - name: network
      match:
        any:
          - resources:
              kinds: [Pod]
      validate:
        failureAction: Enforce
        message: no host network
        cel:
          expressions:
            - expression: "!has(object.spec.hostNetwork) || !object.spec.hostNetwork"
            - expression: object.spec.priority < 10
              messageExpression: "'priority ' + string(object.spec.priority) + ' is too high'"
              reason: Forbidden
`

func TestCELRule(t *testing.T) {
	p := translateText(t, celPolicy, setting{})
	if got := p.targets(); got != "native" {
		t.Fatalf("%s\n%v", got, p.result.Diagnostics)
	}
	t.Log(p.yaml(t))
	p.try(t, []trial{
		{name: "pass", object: pod("", `"priority": 1`), want: "allow"},
		{name: "fail with the message of the rule", object: pod("", `"priority": 1, "hostNetwork": true`), want: "deny refused: no host network"},
		{name: "fail with an expression", object: pod("", `"priority": 20`), want: "deny refused: priority 20 is too high"},
		{name: "an error is a violation", object: pod("", ``), want: "deny refused: no host network"},
		{name: "a deletion has no object", operation: "DELETE", object: pod("", `"priority": 1`), want: "deny refused"},
		{name: "an old violation is no excuse", operation: "UPDATE", object: pod("", `"priority": 20`), want: "deny refused"},
		{name: "another kind", object: `{"apiVersion":"v1","kind":"Secret","metadata":{"name":"s","namespace":"app"}}`, want: "nomatch"},
		{name: "ephemeral containers", operation: "UPDATE", object: pod("", `"priority": 20`), want: "deny refused",
			edit: func(r *admissionv1.AdmissionRequest) { r.SubResource = "ephemeralcontainers" }},
	})
}
