package translate_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/kvap/kvap/diag"
)

// An exception from a ValidatingPolicy is a match condition in front of its own, and what
// it allows is written into the expressions.
func TestCELExceptions(t *testing.T) {
	t.Parallel()
	const (
		text = `
apiVersion: policies.kyverno.io/v1
kind: ValidatingPolicy
metadata: {name: p}
spec:
  MORE
  matchConstraints: {resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [pods]}]}
  validations: [{expression: "object.spec.containers.all(c, c.image in exceptions.allowedImages)", message: bad}]
---
apiVersion: policies.kyverno.io/v1
kind: PolicyException
metadata: {name: e}
spec: {policyRefs: [{name: p, kind: ValidatingPolicy}], EXCEPTION}
`
		labelled = `matchConditions: [{name: a, expression: "object.metadata.labels.free == 'yes'"}]`
		own      = `matchConditions: [{name: own, expression: "object.metadata.name == 'other'"}]`
	)
	for _, tt := range []struct{ more, exception, labels, want string }{
		{"", "reportResult: pass", "", "nomatch"},
		{"", "images: [a]", "", "deny refused: bad"},
		{"", "images: [nginx]", "", "allow"},
		{"", "allowedValues: [nginx]", "", "deny refused: bad"},
		{"", labelled, `,"labels":{"free":"yes"}`, "nomatch"},
		{"", labelled, `,"labels":{"free":"no"}`, "deny refused: bad"},
		{"", labelled, "", "error refused: no such key"},
		{own, labelled, `,"labels":{"free":"no"}`, "nomatch"},
		{own, labelled, "", "error refused: no such key"}, // the exceptions are asked first
	} {
		p := translateText(t, strings.NewReplacer("MORE", tt.more, "EXCEPTION", tt.exception).Replace(text), setting{})
		if got := p.targets(); got != "native" {
			t.Fatalf("%s: %s\n%v", tt.exception, got, p.result.Diagnostics)
		}
		object := `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"web","namespace":"app"` + tt.labels + `},"spec":{"containers":[{"name":"c","image":"nginx"}]}}`
		p.try(t, []trial{{name: tt.more + tt.exception + tt.labels, object: object, want: tt.want}})
	}
	for more, exception := range map[string]string{
		"": `expiresAt: "2027-01-31T00:00:00Z"`, "failurePolicy: Fail": "images: [a], " + labelled, "failurePolicy: Ignore": labelled,
		"validationActions: [Deny]":  `matchConditions: [{name: a, expression: "namespaceObject.metadata.name == 'a'"}]`,
		"validationActions: [Audit]": `matchConditions: [{name: a, expression: "hash.md5('a') == 'a'"}]`,
	} {
		p := translateText(t, strings.NewReplacer("MORE", more, "EXCEPTION", exception).Replace(text), setting{})
		if p.targets() == "native" || !slices.ContainsFunc(p.result.Diagnostics, func(d diag.Diagnostic) bool {
			return d.Code == diag.NoExpression || d.Code == diag.NoFunction
		}) {
			t.Errorf("%s: %v", exception, p.result.Diagnostics)
		}
	}
}

// Of exceptions from a whole policy, one that applies makes up for one that is an error.
func TestCELExceptionsThatErr(t *testing.T) {
	t.Parallel()
	const text = `
apiVersion: policies.kyverno.io/v1
kind: ValidatingPolicy
metadata: {name: p}
spec:
  matchConstraints: {resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [pods]}]}
  validations: [{expression: "false", message: bad}]
---
apiVersion: policies.kyverno.io/v1
kind: PolicyException
metadata: {name: e}
spec: {policyRefs: [{name: p, kind: ValidatingPolicy}], matchConditions: [{name: a, expression: "object.metadata.labels.free == 'yes'"}]}
---
apiVersion: policies.kyverno.io/v1
kind: PolicyException
metadata: {name: f}
spec: {policyRefs: [{name: p, kind: ValidatingPolicy}], matchConditions: [{name: a, expression: "object.metadata.name == 'web'"}]}
`
	p := translateText(t, text, setting{})
	for name, want := range map[string]string{"web": "nomatch", "other": "error refused: no such key"} {
		object := `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"` + name + `","namespace":"app"},"spec":{"containers":[{"name":"c","image":"nginx"}]}}`
		p.try(t, []trial{{name: name, object: object, want: want}})
	}
}
