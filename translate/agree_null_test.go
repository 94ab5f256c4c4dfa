package translate_test

import (
	"testing"

	"github.com/kvap/kvap/translate"
)

// The text null is the JSON of a list to Go, of one without elements.
func TestNullAsAListAgrees(t *testing.T) {
	t.Parallel()
	schemas := builtin(t, 34)
	for _, operator := range []string{"AnyIn", "AllIn"} {
		s := sample{"", "v1", "Pod", `validate: {allowExistingViolations: false, deny: {conditions: {any: [{key: a, operator: ` + operator + `, value: "{{ request.object.spec.nodeName }}"}]}}}`,
			`[{containers: [], nodeName: "null"}, {containers: [], nodeName: a}, {containers: [], nodeName: '["a"]'}, {containers: [], nodeName: "5"}]`}
		t.Run(operator+" of a text of the request", func(t *testing.T) { s.agree(t, translate.Options{Release: 34, Schemas: schemas}) })
	}
}

// Null is a word to the operators of membership, as an element of a list: the one that Go prints.
func TestNullAsAWordAgrees(t *testing.T) {
	t.Parallel()
	schemas := builtin(t, 34)
	for _, operator := range []string{"AnyIn", "AllIn", "AnyNotIn", "AllNotIn", "In", "NotIn"} {
		condition := func(key, value string) string {
			return `validate: {allowExistingViolations: false, deny: {conditions: {any: [{key: "` + key + `", operator: ` + operator + `, value: ` + value + `}]}}}`
		}
		const some = `[{}, {a: "null"}, {a: "null", b: "null"}, {a: "<nil>"}, {a: "<nil>", b: "<nil>"}, {a: a, b: b}, {a: null, b: b}, {a: 0, b: true}, {a: "", b: ""}, {a: "n*", b: "<*"}]`
		for _, s := range []sample{
			{"two fields in null", "x.io/v1", "Gadget", condition("{{ request.object.spec.[a, b] }}", "[null]"), some},
			{"two fields in null and a word", "x.io/v1", "Gadget", condition("{{ request.object.spec.[a, b] }}", "[null, a]"), some},
			{"two fields or nothing in null", "x.io/v1", "Gadget", condition("{{ [request.object.spec.a || '', request.object.spec.b || ''] }}", "[null]"), some},
			{"a field in null", "x.io/v1", "Gadget", condition("{{ request.object.spec.a }}", "[null]"), some},
			{"two texts in null", "v1", "Pod", condition("{{ request.object.spec.[nodeName, hostname] }}", "[null]"),
				`[{containers: []}, {containers: [], nodeName: "null", hostname: "null"}, {containers: [], nodeName: "<nil>", hostname: "<nil>"}, {containers: [], nodeName: "null"}, {containers: [], nodeName: "n*", hostname: "<*"}]`},
			{"a list in null", "x.io/v1", "Gadget", condition("{{ request.object.spec.x }}", "[null]"),
				`[{x: []}, {x: [null]}, {x: ["null"]}, {x: ["<nil>"]}, {x: [null, "null"]}, {x: "null"}, {x: null}, {x: [a, 1]}, {x: ["nul*"]}]`},
		} {
			t.Run(operator+" of "+s.name, func(t *testing.T) { s.agree(t, translate.Options{Release: 34, Schemas: schemas}) })
		}
	}
}

// The text of what is missing is that of null, whatever its type.
func TestTextOfNullAgrees(t *testing.T) {
	t.Parallel()
	schemas := builtin(t, 34)
	for _, condition := range []string{"operator: Equals, value: x", "operator: NotEquals, value: 'null'", "operator: AnyNotIn, value: ['1.5', '2']", "operator: AnyIn, value: [n*]"} {
		for _, key := range []string{"request.object.spec.nodeName", "request.object.spec.hostNetwork"} {
			s := sample{"", "v1", "Pod", `validate: {allowExistingViolations: false, deny: {conditions: {any: [{key: "{{ to_string(` + key + `) }}", ` + condition + `}]}}}`,
				`[{containers: []}, {containers: [{name: a}]}, {containers: [{name: a, args: []}]}, {containers: [{name: a, args: [b, "<\"&"]}], nodeName: "null", hostNetwork: true}]`}
			t.Run(key+" "+condition, func(t *testing.T) { s.agree(t, translate.Options{Release: 34, Schemas: schemas}) })
		}
	}
}

// So it is where some items of the list are variables.
func TestNullBesideVariablesAgrees(t *testing.T) {
	t.Parallel()
	schemas := builtin(t, 34)
	for _, operator := range []string{"AnyIn", "AllIn", "AnyNotIn", "AllNotIn"} {
		for _, word := range []string{"null", "'<n*'", "'*'", "'null'"} {
			value := "[" + word + ", '{{ request.object.spec.schedulerName }}']"
			s := sample{"", "v1", "Pod", `validate: {allowExistingViolations: false, deny: {conditions: {any: [{key: "{{ request.object.spec.[nodeName, hostname] }}", operator: ` + operator + `, value: ` + value + `}]}}}`,
				`[{containers: [], schedulerName: a}, {containers: [], nodeName: a, schedulerName: a}, {containers: [], nodeName: a, hostname: b, schedulerName: a}, {containers: [], nodeName: "null", schedulerName: a}, {containers: [], nodeName: "<nb", schedulerName: a}, {containers: []}]`}
			t.Run(operator+" of "+word, func(t *testing.T) { s.agree(t, translate.Options{Release: 34, Schemas: schemas}) })
			s = sample{"", "x.io/v1", "Gadget", `validate: {allowExistingViolations: false, deny: {conditions: {any: [{key: "{{ request.object.spec.[a, b] }}", operator: ` + operator + `, value: [` + word + `, "{{ request.object.metadata.name }}"]}]}}}`,
				`[{}, {a: x}, {a: x, b: x}, {a: null, b: "null"}, {a: "<nil>", b: x}, {a: 0, b: true}]`}
			t.Run(operator+" of fields and "+word, func(t *testing.T) { s.agree(t, translate.Options{Release: 34, Schemas: schemas}) })
		}
	}
}

// A projection of what is missing is null, which equals nothing.
func TestNullAsAValueAgrees(t *testing.T) {
	t.Parallel()
	schemas := builtin(t, 34)
	const pods = `[{containers: []}, {containers: [], schedulingGates: []}, {containers: [], tolerations: []}, {containers: [], schedulingGates: [], tolerations: []},
		{containers: [], schedulingGates: [{name: a}], tolerations: [{key: a}]}, {containers: [], schedulingGates: [{name: a}], tolerations: [{key: b}]}, {containers: [], schedulingGates: [{name: a}]}]`
	for _, operator := range []string{"Equals", "NotEquals"} {
		for _, existing := range []string{"true", "false"} {
			condition := func(key, value string) string {
				return `validate: {allowExistingViolations: ` + existing + `, deny: {conditions: {any: [{key: "` + key + `", operator: ` + operator + `, value: "` + value + `"}]}}}`
			}
			for _, s := range []sample{
				{"two lists", "v1", "Pod", condition("{{ request.object.spec.schedulingGates[].name }}", "{{ request.object.spec.tolerations[].key }}"), pods},
				{"two lists, one selected", "v1", "Pod", condition("{{ request.object.spec.schedulingGates[*].name }}", "{{ request.object.spec.tolerations[?effect != 'b'].key }}"), pods},
				{"a list and one of the policy", "v1", "Pod", condition("{{ request.object.spec.schedulingGates[].name || `[]` }}", "{{ request.object.spec.tolerations[].key }}"), pods},
				{"a text and a list", "v1", "Pod", condition("a", "{{ request.object.spec.tolerations[].key }}"), pods},
				{"a text of the request and a list", "v1", "Pod", condition("{{ request.object.metadata.name }}", "{{ request.object.spec.tolerations[].key }}"), pods},
				{"a list of what is missing below", "v1", "Pod", condition("{{ request.object.spec.containers[].name }}", "{{ request.object.spec.dnsConfig.options[].name }}"),
					`[{containers: []}, {containers: [{name: a}], dnsConfig: {options: [{name: a}]}}, {containers: [{name: a}], dnsConfig: {}}]`},
			} {
				t.Run(operator+", "+s.name+", existing "+existing, func(t *testing.T) { s.agree(t, translate.Options{Release: 34, Schemas: schemas}) })
			}
		}
	}
}

// A list in a list of values is a text to the operators of membership: what Go prints of it.
func TestListsAmongValuesAgree(t *testing.T) {
	t.Parallel()
	schemas := builtin(t, 34)
	const pods = `[{containers: []}, {containers: [], nodeName: a}, {containers: [], nodeName: "*"}, {containers: [], tolerations: [{key: a}]}, {containers: [], nodeName: a, tolerations: []}]`
	for _, operator := range []string{"AnyIn", "AllIn", "AnyNotIn", "AllNotIn"} {
		for _, key := range []string{"*", "?*", "a", "a*"} {
			condition := func(value string) string {
				return `validate: {allowExistingViolations: false, deny: {conditions: {any: [{key: "` + key + `", operator: ` + operator + `, value: ` + value + `}]}}}`
			}
			for _, s := range []sample{
				{"a list with a variable", "v1", "Pod", condition(`[["{{ request.object.spec.nodeName }}"]]`), pods},
				{"a list of names", "v1", "Pod", condition(`["{{ request.object.spec.tolerations[].key }}"]`), pods},
				{"a list of names beside a word", "v1", "Pod", condition(`["{{ request.object.spec.tolerations[].key }}", "a"]`), pods},
			} {
				t.Run(operator+" of "+key+", "+s.name, func(t *testing.T) { s.agree(t, translate.Options{Release: 34, Schemas: schemas}) })
			}
		}
	}
}
