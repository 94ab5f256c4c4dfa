package interp

import (
	"strings"
	"testing"
)

func TestForEach(t *testing.T) {
	const l = `{spec: {l: [{n1: a, v: 1}, null, {n1: b, v: 2}], s: [x, z], m: {a: 1}, e: []}}`
	tests := []struct {
		note, loops string
		want        Status
		message     string
	}{
		{"pattern on elements", `[{list: request.object.spec.l, pattern: {v: ">0"}}]`, Pass, "rule passed"},
		{"one element fails", `[{list: request.object.spec.l, pattern: {v: 1}}]`, Fail, "validation failure: validation error: m. rule r failed at path /v/"},
		{"anyPattern on elements", `[{list: request.object.spec.l, anyPattern: [{v: 1}, {n1: b}]}]`, Pass, ""},
		{"deny", `[{list: request.object.spec.l, deny: {conditions: {all: [{key: "{{ element.n1 }}", operator: Equals, value: b}]}}}]`, Fail, "validation failure: m"},
		{"the index counts nulls", `[{list: request.object.spec.l, deny: {conditions: {all: [{key: "{{ elementIndex }}", operator: Equals, value: 1}]}}}]`, Pass, ""},
		{"the index is a number (deviation 8)", "[{list: request.object.spec.l, deny: {conditions: {all: [{key: \"{{ elementIndex > `1` }}\", operator: Equals, value: true}]}}}]", Fail, ""},
		{"no element says nothing", `[{list: request.object.spec.e, pattern: {v: 1}}]`, None, ""},
		{"a missing list says nothing", `[{list: request.object.spec.missing, pattern: {v: 1}}]`, None, ""},
		{"a failing list is an error", `[{list: "length(request.object.spec.missing)", pattern: {v: 1}}]`, Error, "failed to evaluate list"},
		{"unless something was checked", `[{list: "length(request.object.spec.missing)", pattern: {v: 1}}, {list: request.object.spec.l, pattern: {v: ">0"}}]`, Pass, ""},
		{"a map is one element", `[{list: request.object.spec.m, pattern: {a: 2}}]`, Fail, ""},
		{"scalars are out of scope", `[{list: request.object.spec.s, pattern: {spec: {m: {a: 2}}}}]`, Fail, ""},
		{"scope of scalars cannot be forced", `[{list: request.object.spec.s, elementScope: true, pattern: {a: 2}}]`, Error, "failed to process foreach"},
		{"scope of maps can be turned off", `[{list: request.object.spec.l, elementScope: false, pattern: {spec: {m: {a: 1}}}}]`, Pass, ""},
		{"false preconditions skip the element", `[{list: request.object.spec.l, preconditions: {all: [{key: "{{ element.n1 }}", operator: Equals, value: a}]}, pattern: {v: 1}}]`, Pass, ""},
		{"and so do those that err", `[{list: request.object.spec.l, preconditions: {all: [{key: "{{ element.zz }}", operator: Equals, value: a}]}, pattern: {v: 1}}]`, None, ""},
		{"a skip does not count", `[{list: request.object.spec.l, pattern: {(n1): c, v: 1}}]`, None, ""},
		{"an error in deny ends the rule", `[{list: request.object.spec.l, deny: {conditions: {all: [{key: "{{ element.zz }}", operator: Equals, value: a}]}}}]`, Error, "validation failure: failed to check deny conditions"},
		{"context of an element", `[{list: request.object.spec.l, context: [{name: c, variable: {jmesPath: element.v}}], deny: {conditions: {all: [{key: "{{ c }}", operator: Equals, value: 2}]}}}]`, Fail, ""},
		{"nested", `[{list: request.object.spec.l, foreach: [{list: "['a', 'q']", deny: {conditions: {all: [{key: "{{ element }}{{ element0.n1 }}{{ elementIndex0 }}", operator: Equals, value: qb2}]}}}]}]`, Fail, ""},
		{"nested, the inner index", `[{list: request.object.spec.l, foreach: [{list: "['a', 'q']", deny: {conditions: {all: [{key: "{{ element1 }}{{ elementIndex1 }}", operator: Equals, value: q1}]}}}]}]`, Fail, ""},
		{"nested patterns out of scope see the outer element", `[{list: request.object.spec.l, foreach: [{list: "['a']", pattern: {v: ">0"}}]}]`, Pass, ""},
		{"the list is no template", `[{list: "to_array('{{ request.operation }}')", deny: {conditions: {all: [{key: "{{ element }}", operator: Equals, value: CREATE}]}}}]`, Pass, ""},
	}
	for _, tt := range tests {
		t.Run(tt.note, func(t *testing.T) {
			got := widgetStatus(t, `validate: {message: m, foreach: `+tt.loops+`}`, l)
			if got.Status != tt.want || !strings.Contains(got.Message, tt.message) {
				t.Errorf("want %s (%s), got %s (%s)", tt.want, tt.message, got.Status, got.Message)
			}
		})
	}
}

// TestForEachErrorOfPattern pins that deviation 2 reaches through a loop.
func TestForEachErrorOfPattern(t *testing.T) {
	got := widgetStatus(t, `validate: {foreach: [{list: request.object.spec.l, pattern: {^(k): [{a: b}], r: 3}}]}`, `{spec: {l: [{r: 4}]}}`)
	if got.Status != Fail || got.Kyverno != Error {
		t.Errorf("got %s/%s (%s)", got.Status, got.Kyverno, got.Message)
	}
}

// TestForEachOnDelete pins that patterns look at elements of the old object.
func TestForEachOnDelete(t *testing.T) {
	source := widgetPolicy(`validate: {foreach: [{list: request.oldObject.spec.l, pattern: {v: 1}}]}`)
	got := judgeOne(t, source, &Request{Admission: admissionRequest("DELETE", nil, object(t, `{spec: {l: [{v: 2}]}}`))}, nil)
	if got.Status != Fail {
		t.Errorf("got %s (%s)", got.Status, got.Message)
	}
}

// TestForEachContext pins that entries of a loop know the policy they are of.
func TestForEachContext(t *testing.T) {
	world := &Offline{Objects: []map[string]any{{"apiVersion": "v1", "kind": "ConfigMap",
		"metadata": map[string]any{"name": "a", "namespace": "default"}, "data": map[string]any{"v": "1"}}}}
	source := widgetPolicy(`validate: {foreach: [{list: request.object.spec.l, context: [{name: c, configMap: {name: "{{ element.name }}"}}], deny: {conditions: {all: [{key: "{{ c.data.v }}", operator: Equals, value: "1"}]}}}]}`)
	got := judgeOne(t, source, &Request{Admission: create(object(t, `{spec: {l: [{name: a}]}}`))}, world)
	if got.Status != Fail {
		t.Errorf("got %s (%s)", got.Status, got.Message)
	}
}
