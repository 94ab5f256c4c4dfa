package translate_test

import (
	"strings"
	"testing"
)

// What no public policy has earns no native form: the webhook judges it exactly.
func TestSeldomFormsAreRefused(t *testing.T) {
	for _, tt := range []struct{ name, rule, why string }{
		{"several context entries of one name", `context: [{name: b, variable: {jmesPath: "request.object.spec.m"}}, {name: b, variable: {jmesPath: "b || 'x'"}}], validate: {deny: {conditions: {any: [{key: "{{ b }}", operator: Equals, value: x}]}}}`,
			"several entries of one name"},
		{"the index of an element", `validate: {foreach: [{list: "request.object.spec.l", deny: {conditions: {any: [{key: "{{ elementIndex }}", operator: Equals, value: 1}]}}}]}`,
			"the index of an element"},
		{"an image by the name of its container", `validate: {deny: {conditions: {any: [{key: "{{ images.containers.a.registry }}", operator: Equals, value: x}]}}}`,
			"the image of one container"},
		{"images, and not a part of them", `validate: {foreach: [{list: "images.containers.*", deny: {conditions: {any: [{key: "{{ element.tag }}", operator: Equals, value: x}]}}}]}`,
			"a projection over images"},
		{"the order of two values in a query", `validate: {deny: {conditions: {any: [{key: "{{ request.object.spec.a > request.object.spec.b }}", operator: Equals, value: true}]}}}`,
			"the order of two values"},
		{"two sorted lists of unknown type", `validate: {deny: {conditions: {any: [{key: "{{ sort(request.object.spec.a) }}", operator: Equals, value: "{{ sort(request.object.spec.b) }}"}]}}}`,
			"sort() of what is neither texts nor numbers"},
		{"the reference of an image with its tag", `validate: {deny: {conditions: {any: [{key: "{{ images.containers.*.referenceWithTag }}", operator: AnyIn, value: [x]}]}}}`,
			"the referenceWithTag of an image"},
		{"maps among words that may match what Go prints of one", `validate: {deny: {conditions: {any: [{key: "{{ request.object.metadata.managedFields[].fieldsV1 }}", operator: AnyIn, value: ["*x*"]}]}}}`,
			"a list of maps"},
		{"a slice", `validate: {deny: {conditions: {any: [{key: "{{ request.object.spec.l[1:].a }}", operator: AnyIn, value: [x]}]}}}`,
			"a slice"},
		{"a text of JSON as a list", `validate: {deny: {conditions: {any: [{key: "{{ request.object.spec.a }}", operator: AnyIn, value: '["a", "b"]'}]}}}`,
			"a text of JSON"},
		{"a number as a list", `validate: {deny: {conditions: {any: [{key: "{{ request.object.spec.l[].a }}", operator: AnyIn, value: 5}]}}}`,
			"neither a list nor a text"},
		{"a range for a value of unknown type", `validate: {deny: {conditions: {any: [{key: "{{ request.object.spec.l[].a }}", operator: AnyNotIn, value: 5-100}]}}}`,
			"a range for what is no number"},
		{"a wildcard that a fraction may match", `validate: {pattern: {spec: {a: "80*"}}}`, "the text of a number with a fraction"},
		{"the order of two values of unknown type", `validate: {deny: {conditions: {any: [{key: "{{ request.object.spec.a }}", operator: GreaterThan, value: "{{ request.object.spec.b }}"}]}}}`,
			"values have no order"},
		{"a list in a list", `validate: {deny: {conditions: {any: [{key: "{{ contains(request.object.spec.a, request.object.spec.b[]) }}", operator: Equals, value: true}]}}}`,
			"contains() of a list"},
		{"a list among keys", `validate: {deny: {conditions: {any: [{key: ["{{ request.userInfo.groups }}", "{{ request.object.spec.a }}"], operator: AnyIn, value: "{{ [request.object.spec.b] }}"}]}}}`,
			"a list of lists"},
		{"an element of a selection", `validate: {deny: {conditions: {any: [{key: "{{ request.object.spec.[a, b] | [1] }}", operator: Equals, value: x}]}}}`,
			"an element of a selection"},
		{"a function over a selection", `validate: {deny: {conditions: {any: [{key: "{{ request.object.spec.[a, b][].to_upper(@) }}", operator: AnyIn, value: [X]}]}}}`,
			"which makes something of null"},
		{"the request as a whole", `validate: {deny: {conditions: {any: [{key: "{{ request.[name, namespace] }}", operator: AnyIn, value: [x]}]}}}`,
			"the request as a whole"},
		{"the values of a map of the policy", "validate: {deny: {conditions: {any: [{key: \"{{ `{\\\"a\\\": 1}`.* }}\", operator: AnyIn, value: [x]}]}}}",
			"the values of a map of the policy"},
		{"a negation beside a condition, with an excuse", `validate: {failureAction: Enforce, pattern: {spec: {(a): 1, X(b): null}}}`,
			"a negation beside conditions"},
		{"a text of unknown type beside another", `validate: {deny: {conditions: {any: [{key: "a-{{ request.object.spec.a }}", operator: Equals, value: a-b}]}}}`,
			"the JSON text of a value"},
		{"a list of a foreach whose entry may be an error", `context: [{name: names, variable: {jmesPath: "request.object.spec.l"}}], validate: {foreach: [{list: names, deny: {conditions: {any: [{key: "{{ element }}", operator: Equals, value: x}]}}}]}`,
			"a list of a foreach whose context entry may be an error"},
		{"a sorted list that may have texts and numbers in it", `validate: {deny: {conditions: {any: [{key: "{{ sort(request.object.spec.egress[].ports[].port) }}", operator: Equals, value: abc}]}}}`,
			"sort() of what is neither texts nor numbers"},
		{"a list of lists", `validate: {pattern: {spec: {l: [[1], [2]]}}}`, "a list of lists"},
		{"an existence anchor of a field that is a key besides", `validate: {pattern: {spec: {^(l): [{a: 1}], l: [{a: 1}]}}}`,
			"an anchor of a field"},
		{"an equality anchor of a field that is a key besides", `validate: {pattern: {spec: {=(m): {(a): 1, b: 2}, m: null}}}`,
			"an anchor of a field"},
		{"a negation anchor of a field that is a key besides", `validate: {failureAction: Enforce, pattern: {spec: {X(m): {a: 1}, m: {b: 2}}}}`,
			"an anchor of a field"},
		{"a condition on what exists, in a foreach with an excuse", `validate: {failureAction: Enforce, foreach: [{list: request.object.spec.l, pattern: {^(m): [{(a): 1, b: "?*"}]}}]}`,
			"an existence anchor, in a foreach"},
		{"what may be null as the name of a field", `validate: {deny: {conditions: {any: [{key: '{{ request.object.metadata.labels."{{ request.object.metadata.name || request.object.metadata.annotations.app }}" }}', operator: Equals, value: x}]}}}`,
			"a field whose name may be null"},
		{"a comparison of a list that may be an error", `validate: {deny: {conditions: {any: [{key: "{{ request.object.spec.m.ll[*][?starts_with(@, 'a')] == 'abc' }}", operator: Equals, value: abc}]}}}`,
			"a comparison of a list whose elements may be errors"},
		{"an existence anchor in a foreach with an excuse", `validate: {failureAction: Enforce, foreach: [{list: request.object.spec.l, pattern: {^(m): [{a: 1}], b: "?*"}}]}`,
			"an existence anchor, in a foreach"},
		{"what may be a number as the name of a field", `validate: {deny: {conditions: {any: [{key: '{{ request.object.metadata.labels."{{ request.object.spec.ratio }}" }}', operator: Equals, value: x}]}}}`,
			"a field whose name may be another thing than a text"},
		{"a list as the name of a field", `validate: {deny: {conditions: {any: [{key: '{{ request.object.metadata.labels."{{ request.object.metadata.ownerReferences[].name }}" }}', operator: Equals, value: x}]}}}`,
			"a field whose name is a list"},
		{"the order of a text and of what is known of it", "validate: {deny: {conditions: {any: [{key: '{{ request.object.metadata.name }}', operator: GreaterThan, value: '{{ request.object.metadata.name | [*] | length(@ || `[]`) }}'}]}}}",
			"the order of a text and of a number"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			text := "apiVersion: kyverno.io/v1\nkind: ClusterPolicy\nmetadata: {name: p}\nspec:\n  rules:\n  - {name: r, match: {any: [{resources: {kinds: [KIND]}}]}, " + tt.rule + "}\n"
			kind := "x.io/v1/Gadget"
			if strings.Contains(tt.rule, "images.") {
				kind = "Pod"
			} else if strings.Contains(tt.rule, "egress") {
				kind = "NetworkPolicy"
			}
			p := translateText(t, strings.Replace(text, "KIND", kind, 1), setting{})
			if got := p.targets(); got != "webhook KV201" || !strings.Contains(p.result.Rules[0].Reason, tt.why) {
				t.Errorf("got %s: %v", got, p.result.Diagnostics)
			}
		})
	}
}
