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
		{"two sorted lists", `validate: {deny: {conditions: {any: [{key: "{{ sort(request.object.spec.a) }}", operator: Equals, value: "{{ sort(request.object.spec.b) }}"}]}}}`,
			"this comparison of two values"},
		{"a list of lists", `validate: {pattern: {spec: {l: [[1], [2]]}}}`, "a list of lists"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			text := "apiVersion: kyverno.io/v1\nkind: ClusterPolicy\nmetadata: {name: p}\nspec:\n  rules:\n  - {name: r, match: {any: [{resources: {kinds: [KIND]}}]}, " + tt.rule + "}\n"
			kind := "x.io/v1/Gadget"
			if strings.Contains(tt.rule, "images.") {
				kind = "Pod"
			}
			p := translateText(t, strings.Replace(text, "KIND", kind, 1), setting{})
			if got := p.targets(); got != "webhook KV201" || !strings.Contains(p.result.Rules[0].Reason, tt.why) {
				t.Errorf("got %s: %v", got, p.result.Diagnostics)
			}
		})
	}
}
