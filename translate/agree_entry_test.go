package translate_test

import (
	"testing"

	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/translate"
)

// A context entry is an error where a variable in its value or its default is one,
// whatever of it is read.
func TestEntriesAgree(t *testing.T) {
	t.Parallel()
	schemas := builtin(t, 34)
	denied := func(entry, key string) string {
		return `context: [{name: m, variable: ` + entry + `}], validate: {allowExistingViolations: false, deny: {conditions: {any: [{key: "` + key + `", operator: NotEquals, value: k}]}}}`
	}
	const pods = `[{containers: []}, {containers: [], nodeName: k}, {containers: [], nodeName: a, hostname: k}]`
	for _, s := range []sample{
		{"a key beside a variable", "v1", "Pod", denied(`{value: {a: "{{ request.object.spec.nodeName }}", b: k}}`, "{{ m.b }}"), pods},
		{"a key beside a list", "v1", "Pod", denied(`{value: {a: ["{{ request.object.spec.nodeName }}"], b: k}}`, "{{ m.b }}"), pods},
		{"a path beside a variable", "v1", "Pod", denied(`{value: {a: "{{ request.object.spec.nodeName }}", b: {c: k}}, jmesPath: b.c}`, "{{ m }}"), pods},
		{"a function of nothing", "v1", "Pod", denied(`{value: {a: "{{ to_upper(request.object.spec.nodeName) }}", b: k}}`, "{{ m.b }}"), pods},
		{"a part of a selection", "v1", "Pod", denied(`{value: {a: "{{ to_upper(request.object.spec.nodeName) }}"}}`, "{{ {p: request.object.spec.hostname, q: m.b}.p }}"), pods},
		{"a default that nobody needs", "v1", "Pod", denied(`{value: k, default: "{{ request.object.spec.nodeName }}"}`, "{{ m }}"), pods},
		{"a map as the default of a map", "v1", "Pod", denied(`{jmesPath: request.object.spec.nodeSelector, default: {a: "{{ request.object.spec.nodeName }}"}}`, "{{ m.a }}"),
			`[{containers: []}, {containers: [], nodeName: k}, {containers: [], nodeSelector: {a: k}}, {containers: [], nodeName: a, nodeSelector: {a: k}}]`},
		{"maps in a list of values", "v1", "Pod", `validate: {allowExistingViolations: false, deny: {conditions: {any: [{key: "{{ request.object.metadata.name[0] }}", operator: AnyNotIn, value: [{b: "{{ request.object.spec.nodeName }}"}]}]}}}`, pods},
	} {
		t.Run(s.name, func(t *testing.T) { s.agree(t, translate.Options{Release: 34, Schemas: schemas}) })
	}
}

// The list of a foreach may be a context entry that is always there.
func TestEntriesAsListsAgree(t *testing.T) {
	t.Parallel()
	schemas := builtin(t, 34)
	each := func(entry, list string) string {
		return `context: [{name: m, variable: ` + entry + `}], validate: {allowExistingViolations: false, foreach: [{list: "` + list + `", deny: {conditions: {any: [{key: "{{ element }}", operator: Equals, value: k}]}}}]}`
	}
	const pods = `[{containers: []}, {containers: [{name: k}]}, {containers: [], nodeName: k}, {containers: [], nodeName: a}, {containers: [], schedulingGates: [{name: k}]}]`
	for _, s := range []sample{
		{"a path", "v1", "Pod", each(`{jmesPath: "request.object.spec.containers"}`, "m[].name"), pods},
		{"a default", "v1", "Pod", each(`{jmesPath: "request.object.spec.schedulingGates[].name", default: []}`, "m"), pods},
	} {
		t.Run(s.name, func(t *testing.T) { s.agree(t, translate.Options{Release: 34, Schemas: schemas}) })
	}
}

// What errs is an error also where a condition does not depend on it.
func TestUnreadErrorsAgree(t *testing.T) {
	t.Parallel()
	schemas := builtin(t, 34)
	denied := func(context, key, operator, value string) string {
		return context + `validate: {allowExistingViolations: false, deny: {conditions: {any: [{key: "` + key + `", operator: ` + operator + `, value: ` + value + `}]}}}`
	}
	const either = `context: [{name: m, variable: {jmesPath: request.object.spec.hostname, default: [{b: c}]}}], `
	const pods = `[{containers: []}, {containers: [], nodeName: k}, {containers: [], nodeName: "5"}, {containers: [], nodeName: a, hostname: "1s"}, {containers: [], nodeName: "1s"}]`
	for _, s := range []sample{
		{"the length of nothing", "v1", "Pod", denied(either, "{{ request.object.spec.nodeName }}", "GreaterThan", `"{{ length(m.a) }}"`), pods},
		{"the length of a key that the policy has not", "v1", "Pod", denied(`context: [{name: m, variable: {jmesPath: request.object.spec.hostname, default: {b: c}}}], `, "{{ request.object.spec.nodeName }}", "GreaterThan", `"{{ length(m.a) }}"`), pods},
		{"the keys of nothing", "v1", "Pod", denied(either, "{{ keys(m.a) }}", "AnyNotIn", `{c: d}`), pods},
		{"the parts of nothing", "v1", "Pod", denied(either, "{{ split(m.a, '-') }}", "AllNotIn", `{c: d}`), pods},
		{"a predicate beside nothing", "v1", "Pod", denied("", "{{ contains(request.object.spec.nodeName, 'k') }}", "Equals", `"{{ request.object.metadata.name.b }}"`), pods},
		{"a selection is something", "v1", "Pod", denied("", "{{ [request.object.spec.nodeName, request.object.spec.hostname] || 'k' }}", "AnyNotIn", `[k]`), pods},
	} {
		t.Run(s.name, func(t *testing.T) { s.agree(t, translate.Options{Release: 34, Schemas: schemas}) })
	}
}

// What errs in a text of a pattern is an error also where the object decides without it:
// Kyverno fills in a pattern before it looks at the object.
func TestUnreadErrorsOfPatternsAgree(t *testing.T) {
	t.Parallel()
	schemas := builtin(t, 34)
	const pods = `[{containers: []}, {containers: [], hostname: a}, {containers: [], nodeName: k, hostname: K-a}, {containers: [], nodeName: k}, {containers: [], nodeName: k, schedulerName: b}, {containers: [], schedulerName: b}]`
	for _, existing := range []string{"true", "false"} {
		checked := func(pattern string) string {
			return `validate: {allowExistingViolations: ` + existing + `, ` + pattern + `}`
		}
		for _, s := range []sample{
			{"a function of nothing", "v1", "Pod", checked(`pattern: {spec: {=(hostname): "{{ to_upper(request.object.spec.nodeName) }}-a"}}`), pods},
			{"a function of nothing in a wildcard", "v1", "Pod", checked(`pattern: {spec: {=(hostname): "{{ to_upper(request.object.spec.nodeName) }}-*"}}`), pods},
			{"a function of nothing alone", "v1", "Pod", checked(`pattern: {spec: {=(hostname): "{{ to_upper(request.object.spec.nodeName) }}"}}`), pods},
			{"behind a condition", "v1", "Pod", checked(`pattern: {spec: {(schedulerName): b, hostname: "{{ to_upper(request.object.spec.nodeName) }}-a"}}`), pods},
			{"one of several", "v1", "Pod", checked(`anyPattern: [{spec: {schedulerName: b}}, {spec: {hostname: "{{ to_upper(request.object.spec.nodeName) }}-a"}}]`), pods},
		} {
			t.Run(s.name+", existing "+existing, func(t *testing.T) { s.agree(t, translate.Options{Release: 34, Schemas: schemas}) })
		}
	}
}

// A value with a variable in a key has no native form.
func TestVariableInAKey(t *testing.T) {
	t.Parallel()
	const source = `apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: p}
spec:
  validationFailureAction: Enforce
  rules:
  - name: r
    match: {any: [{resources: {kinds: [Pod]}}]}
    context: [{name: m, variable: {value: {"{{ request.object.spec.nodeName }}": a, b: k}}}]
    validate: {deny: {conditions: {any: [{key: "{{ m.b }}", operator: Equals, value: k}]}}}
`
	if rule := compileText(t, source, setting{}).Rules[0]; rule.Target != translate.Webhook || len(rule.Codes) != 1 || rule.Codes[0] != diag.NoExpression {
		t.Errorf("%s, codes %v", rule.Target, rule.Codes)
	}
}

// Wildcards of a default, or of the other side of ||, are the policy's own and count in
// all operators of membership.
func TestWildcardsOfDefaultsAgree(t *testing.T) {
	t.Parallel()
	schemas := builtin(t, 34)
	const lists = `[{containers: []}, {containers: [], schedulingGates: [{name: "*"}]}, {containers: [], schedulingGates: [{name: k}], nodeName: k}, {containers: [], schedulingGates: [{name: a}], nodeName: kk}, {containers: [], nodeName: kk}, {containers: [], nodeName: "?"}]`
	for _, operator := range []string{"AnyIn", "AllIn", "AnyNotIn", "AllNotIn"} {
		denied := func(context, key, value string) string {
			return context + `validate: {allowExistingViolations: false, deny: {conditions: {any: [{key: "` + key + `", operator: ` + operator + `, value: "` + value + `"}]}}}`
		}
		for _, s := range []sample{
			{"a default", "v1", "Pod", denied(`context: [{name: m, variable: {jmesPath: "request.object.spec.schedulingGates[].name", default: ["k*"]}}], `, "{{ request.object.spec.nodeName }}", "{{ m }}"), lists},
			{"a list or one of the policy", "v1", "Pod", denied("", "{{ request.object.spec.nodeName || 'k' }}", "{{ request.object.spec.schedulingGates[].name || `[\\\"k*\\\"]` }}"), lists},
			{"a text or one of the policy", "v1", "Pod", denied(`context: [{name: m, variable: {value: [k, a]}}], `, "{{ request.object.spec.nodeName || 'k*' }}", "{{ m }}"), lists},
		} {
			t.Run(operator+" of "+s.name, func(t *testing.T) { s.agree(t, translate.Options{Release: 34, Schemas: schemas}) })
		}
	}
}
