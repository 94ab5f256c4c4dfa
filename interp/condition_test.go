package interp

import (
	"strings"
	"testing"
)

// denies tells whether a rule denies by one condition.
func denies(t *testing.T, key, operator, value, object string) Status {
	t.Helper()
	got := widgetStatus(t, `validate: {deny: {conditions: {all: [{key: `+key+`, operator: `+operator+`, value: `+value+`}]}}}`, object)
	if got.Status == Error {
		t.Logf("error: %s", got.Message)
	}
	return got.Status
}

func TestOperators(t *testing.T) {
	tests := []struct {
		key, operator, value string
		want                 bool
	}{
		{`"nginx:latest"`, "Equals", `"*:latest"`, true},
		{`"*:latest"`, "Equals", `"nginx:latest"`, false},
		{`"5"`, "Equals", `"*"`, false},
		{`"abc"`, "Equals", `"*"`, true},
		{`"5"`, "Equals", `5`, false},
		{`5`, "Equals", `"5"`, true},
		{`"1h"`, "Equals", `3600`, true},
		{`"1Gi"`, "Equals", `"1024Mi"`, true},
		{`null`, "NotEquals", `"x"`, false},
		{`""`, "Equals", `""`, true},
		{`"5"`, "NotEquals", `""`, true},
		{`"a"`, "AnyIn", `["a","b"]`, true},
		{`"a*"`, "AnyIn", `["abc"]`, true},
		{`["a","z"]`, "AnyIn", `["a"]`, true},
		{`["a","z"]`, "AllIn", `["a"]`, false},
		{`[]`, "AllIn", `["a"]`, true},
		{`[]`, "AnyIn", `["a"]`, false},
		{`[]`, "AllNotIn", `["a"]`, true},
		{`[]`, "AnyNotIn", `["a"]`, false},
		{`"x"`, "AnyNotIn", `"123"`, false},
		{`"x"`, "AnyNotIn", `"abc"`, true},
		{`7`, "AnyIn", `"1-10"`, true},
		{`[7,11]`, "AllIn", `"1-10"`, false},
		{`[7,11]`, "AnyNotIn", `"1-10"`, true},
		{`1000000`, "AnyIn", `[1000000]`, true}, // deviation 7: Kyverno compares 1e+06 with 1000000
		{`"1.10"`, "GreaterThan", `"1.9"`, false},
		{`"1.10.0"`, "GreaterThan", `"1.9.0"`, true},
		{`"30m"`, "LessThan", `"1h"`, true},
		{`5`, "GreaterThan", `"1Gi"`, false},
		{`true`, "GreaterThan", `0`, false},
		// beyond the published vectors
		{`true`, "Equals", `true`, true},
		{`true`, "Equals", `"true"`, false},
		{`true`, "NotEquals", `"true"`, true},
		{`5`, "Equals", `5.0`, true},
		{`5`, "Equals", `"5.0"`, true},
		{`5`, "NotEquals", `"five"`, true},
		{`5`, "Equals", `null`, false},
		{`5`, "NotEquals", `null`, true},
		{`[1, a]`, "Equals", `[1, a]`, true},
		{`[1, a]`, "Equals", `[a, 1]`, false},
		{`{a: 1}`, "Equals", `{a: 1}`, true},
		{`{a: 1}`, "NotEquals", `{a: 2}`, true},
		{`{a: 1}`, "Equals", `"a"`, false},
		{`"1h"`, "Equals", `"60m"`, true},
		{`"60m"`, "Equals", `"3600"`, false},
		{`"a"`, "Equal", `"a"`, true},
		{`"a"`, "NotEqual", `"a"`, false},
		{`null`, "Equals", `null`, false},
		{`null`, "AnyNotIn", `["a"]`, false},
		{`null`, "AllNotIn", `["a"]`, false},
		{`"a"`, "AnyNotIn", `["b*"]`, true},
		{`"bb"`, "AllNotIn", `["b*"]`, false},
		{`"a"`, "AnyIn", `5`, false},
		{`"a"`, "AnyNotIn", `5`, false},
		{`"a"`, "AnyIn", `"[\"a\",\"b\"]"`, true},
		{`"c"`, "AnyNotIn", `"[\"a\",\"b\"]"`, true},
		{`"c"`, "AnyNotIn", `"[1]"`, false},
		{`["a","c"]`, "AnyNotIn", `"[\"a\",\"b\"]"`, true},
		{`["a"]`, "AllNotIn", `"a"`, false},
		{`["a"]`, "AnyIn", `"a"`, true},
		{`["a","b"]`, "AllIn", `"a"`, false},
		{`[5]`, "AnyIn", `5`, true},
		{`[5]`, "AllIn", `5`, false},
		{`[5]`, "AllNotIn", `6`, false},
		{`[5]`, "AnyNotIn", `6`, true},
		{`["a"]`, "AnyIn", `{}`, false},
		{`{}`, "AnyNotIn", `["a"]`, false},
		{`[11, 12]`, "AllNotIn", `"1-10"`, true},
		{`[1, 12]`, "AllNotIn", `"1-10"`, false},
		{`"a"`, "In", `["a"]`, true},
		{`"a"`, "NotIn", `["a"]`, false},
		{`"a"`, "NotIn", `"b"`, false},
		{`["a"]`, "In", `"a"`, true},
		{`["a"]`, "NotIn", `"a"`, true},
		{`["a","b"]`, "In", `["a","b","c"]`, true},
		{`["a*"]`, "In", `["ab"]`, false},
		{`["a","z"]`, "NotIn", `["a"]`, true},
		{`["a"]`, "NotIn", `["a"]`, false},
		{`["a"]`, "In", `["a", 1]`, false},
		{`5`, "GreaterThan", `4.5`, true},
		{`5`, "GreaterThan", `"4.5"`, true},
		{`5`, "LessThan", `"1h"`, true},
		{`"5"`, "LessThan", `"10"`, true},
		{`"5"`, "LessThan", `10`, true},
		{`"500m"`, "LessThan", `"2"`, true},
		{`"1h"`, "GreaterThan", `60`, true},
		{`"1h"`, "GreaterThanOrEquals", `"60m"`, true},
		{`"x"`, "LessThan", `"y"`, false},
		{`[1]`, "LessThan", `2`, false},
		{`null`, "LessThan", `2`, false},
		{`"v1.2.3"`, "LessThan", `"2.0.0"`, false},
		{`"1h"`, "DurationGreaterThan", `30`, true},
		{`30`, "DurationLessThanOrEquals", `"30s"`, true},
		{`"0"`, "DurationLessThan", `1`, true},
		{`"x"`, "DurationLessThan", `1`, false},
	}
	for _, tt := range tests {
		t.Run(tt.key+" "+tt.operator+" "+tt.value, func(t *testing.T) {
			want := Pass
			if tt.want {
				want = Fail
			}
			if got := denies(t, tt.key, tt.operator, tt.value, `{}`); got != want {
				t.Errorf("want %s, got %s", want, got)
			}
		})
	}
}

// TestRequestWildcards pins deviation 9: In and its relatives take the text * of the
// request for a pattern, and the negated operators do not. So either is true where
// any reading makes it true. Any other text of the request is itself.
func TestRequestWildcards(t *testing.T) {
	const star = `{metadata: {name: w}, spec: {x: "*", l: ["*"], plain: nginx, some: "ngi*"}}`
	tests := []struct {
		note, key, value string
		in, notIn        bool
	}{
		{"a key of the request", `"{{ request.object.spec.x }}"`, `["nginx"]`, true, true},
		{"equals itself", `"{{ request.object.spec.x }}"`, `["\\*", "*"]`, true, false},
		{"one in a list", `"{{ request.object.spec.l }}"`, `["nginx"]`, true, true},
		{"the value", `nginx`, `"{{ request.object.spec.l }}"`, true, true},
		{"as text", `nginx`, `"{{ request.object.spec.x }}"`, true, true},
		{"the policy's patterns count", `"{{ request.object.spec.plain }}"`, `["ngi*"]`, true, false},
		{"in a list with the request's", `nginx`, `["{{ request.object.spec.x }}", "ngi*"]`, true, false},
		{"beside the request's in one text", `"*-x"`, `["{{ request.object.spec.x }}-?"]`, true, false},
		{"of which * is a part", `"a-x"`, `["{{ request.object.spec.x }}-?"]`, false, true},
		{"another pattern of the request", `nginx`, `["{{ request.object.spec.some }}"]`, false, true},
		{"as a key", `"{{ request.object.spec.some }}"`, `["nginx"]`, false, true},
		{"a literal of an expression is the policy's", `nginx`, `["{{ 'ngi*' }}"]`, true, false},
		{"what goes through the context keeps its origin", `nginx`, `"{{ copy }}"`, true, true},
		{"a variable of the policy's own text is its own", `nginx`, `"{{ own }}"`, true, false},
		{"so is a default that is taken", `nginx`, `"{{ default }}"`, true, false},
		{"and one that is not taken is not", `nginx`, `"{{ taken }}"`, true, true},
		{"so is the other side of ||", `nginx`, "\"{{ request.object.spec.none || `[\\\"ngi*\\\"]` }}\"", true, false},
		{"and of &&", `nginx`, "\"{{ request.object.spec.x && `[\\\"ngi*\\\"]` }}\"", true, false},
		{"and what not_null takes", `nginx`, "\"{{ not_null(request.object.spec.none, `[\\\"ngi*\\\"]`) }}\"", true, false},
		{"and what they do not take is not", `nginx`, "\"{{ request.object.spec.l || `[\\\"ngi*\\\"]` }}\"", true, true},
		{"nor what not_null does not", `nginx`, "\"{{ not_null(request.object.spec.l, `[\\\"ngi*\\\"]`) }}\"", true, true},
	}
	for _, tt := range tests {
		for operator, denied := range map[string]bool{"AnyIn": tt.in, "AllIn": tt.in, "AnyNotIn": tt.notIn, "AllNotIn": tt.notIn} {
			t.Run(tt.note+" "+operator, func(t *testing.T) {
				got := widgetStatus(t, `
context:
- {name: copy, variable: {jmesPath: request.object.spec.l}}
- {name: own, variable: {value: ["ngi*"]}}
- {name: default, variable: {jmesPath: request.object.spec.none, default: ["ngi*"]}}
- {name: taken, variable: {jmesPath: request.object.spec.l, default: ["ngi*"]}}
validate: {deny: {conditions: {all: [{key: `+tt.key+`, operator: `+operator+`, value: `+tt.value+`}]}}}`, star)
				want := Pass
				if denied {
					want = Fail
				}
				if got.Status != want {
					t.Errorf("want %s, got %s (%s)", want, got.Status, got.Message)
				}
			})
		}
	}
}

func TestOldMembershipOfRequestWildcards(t *testing.T) {
	const key, object = `"{{ request.object.spec.x }}"`, `{spec: {x: "*"}}`
	for _, operator := range []string{"In", "NotIn"} {
		if got := denies(t, key, operator, `["nginx"]`, object); got != Fail {
			t.Errorf("%s: want fail, got %s", operator, got)
		}
	}
}

func TestOldMembershipOfNumbers(t *testing.T) {
	if got := denies(t, `[1]`, "In", `["1"]`, `{}`); got != Error {
		t.Errorf("deviation 4: want error, got %s", got)
	}
}

func TestConditionStructure(t *testing.T) {
	const yes, no, errs = `{key: a, operator: Equals, value: a, message: yes}`, `{key: a, operator: Equals, value: b, message: no}`, `{key: "{{ nothing }}", operator: Equals, value: b}`
	tests := []struct {
		conditions string
		want       Status
		message    string
	}{
		{`{}`, Fail, "validation error: rule r failed"},
		{`{any: []}`, Pass, ""},
		{`{all: []}`, Fail, ""},
		{`{any: [` + no + `, ` + yes + `]}`, Fail, "true"},
		{`{any: [` + no + `]}`, Pass, ""},
		{`{any: [` + yes + `, ` + errs + `]}`, Fail, ""},
		{`{any: [` + errs + `, ` + yes + `]}`, Error, ""},
		{`{all: [` + yes + `, ` + no + `]}`, Pass, ""},
		{`{all: [` + no + `, ` + errs + `]}`, Pass, ""},
		{`{any: [` + no + `], all: [` + errs + `]}`, Error, ""},
		{`[` + yes + `, ` + yes + `]`, Fail, ""},
	}
	for _, tt := range tests {
		t.Run(tt.conditions, func(t *testing.T) {
			conditions := strings.NewReplacer("message: yes", `message: "true"`, "message: no", `message: "false"`).Replace(tt.conditions)
			got := widgetStatus(t, `validate: {deny: {conditions: `+conditions+`}}`, `{}`)
			if got.Status != tt.want || tt.message != "" && got.Message != tt.message {
				t.Errorf("want %s (%s), got %s (%s)", tt.want, tt.message, got.Status, got.Message)
			}
		})
	}
}

func TestDenyMessages(t *testing.T) {
	tests := []struct{ message, condition, want string }{
		{"", "", "validation error: rule r failed"},
		{"no", "", "no"},
		{"no {{ request.operation }}", "", "no CREATE"},
		{"no", "because", "no; because"},
		{"no", "because of {{ request.operation }}", "no; because of CREATE"},
		{"no {{ nothing }}", "because of {{ request.operation }}", "because of {{ request.operation }}"},
		{"{{ request.object.spec }}", "", "the produced message didn't resolve to a string, check your policy definition."},
	}
	for _, tt := range tests {
		got := widgetStatus(t, `validate: {message: "`+tt.message+`", deny: {conditions: {all: [{key: a, operator: Equals, value: a, message: "`+tt.condition+`"}]}}}`, `{spec: {}}`)
		if got.Status != Fail || got.Message != tt.want {
			t.Errorf("%q: want %q, got %s %q", tt.message, tt.want, got.Status, got.Message)
		}
	}
}

// TestDelete pins that on DELETE the text request.object means the old object in
// variables, and only there.
func TestDelete(t *testing.T) {
	old := object(t, `{metadata: {name: w}, spec: {x: 1, l: [1]}}`)
	tests := []struct {
		note, rule string
		want       Status
	}{
		{"in a variable", `validate: {deny: {conditions: {all: [{key: "{{ request.object.spec.x }}", operator: Equals, value: 1}]}}}`, Fail},
		{"as quoted names", `validate: {deny: {conditions: {all: [{key: "{{ request.\"object\".spec.x || 'none' }}", operator: Equals, value: none}]}}}`, Fail},
		{"in a foreach list", `validate: {foreach: [{list: request.object.spec.l, deny: {}}]}`, None},
		{"in the query of an entry", `
context: [{name: c, variable: {jmesPath: request.object.spec.x, default: none}}]
validate: {deny: {conditions: {all: [{key: "{{ c }}", operator: Equals, value: none}]}}}`, Fail},
		{"images are those of the new object", `validate: {deny: {conditions: {all: [{key: "{{ images.containers || 'none' }}", operator: Equals, value: none}]}}}`, Fail},
	}
	for _, tt := range tests {
		t.Run(tt.note, func(t *testing.T) {
			got := judgeOne(t, widgetPolicy(tt.rule), &Request{Admission: admissionRequest("DELETE", nil, old)}, nil)
			if got.Status != tt.want {
				t.Errorf("want %s, got %s (%s)", tt.want, got.Status, got.Message)
			}
		})
	}
}

func TestPredefinedVariables(t *testing.T) {
	tests := []struct{ expression, user, want string }{
		{"request.operation", "alice", "CREATE"},
		{"request.userInfo.username", "alice", "alice"},
		{"serviceAccountName", "system:serviceaccount:team:robot", "robot"},
		{"serviceAccountNamespace", "system:serviceaccount:team:robot", "team"},
		{"serviceAccountName", "a-user-of-22-characters:x:y", ""}, // deviation 6
		{"request.oldObject.x || 'null'", "alice", "null"},
		{"type(request.options)", "alice", "null"},
		{"request.roles || 'absent'", "alice", "absent"},
		{"request.synchronize || 'absent'", "alice", "absent"}, // deviation 11
	}
	for _, tt := range tests {
		admission := create(object(t, `{}`))
		admission["userInfo"] = map[string]any{"username": tt.user}
		source := widgetPolicy(`validate: {message: "<{{ ` + tt.expression + ` }}>", deny: {}}`)
		got := judgeOne(t, source, &Request{Admission: admission}, nil)
		if got.Message != "<"+tt.want+">" {
			t.Errorf("%s of %s: want %q, got %q", tt.expression, tt.user, tt.want, got.Message)
		}
	}
	source := widgetPolicy(`validate: {message: "{{ request.oldObject.x }}", deny: {conditions: {all: [{key: "{{ request.roles }}", operator: Equals, value: ["a:b"]}]}}}`)
	if got := judgeOne(t, source, &Request{Admission: create(object(t, `{}`)), Roles: []string{"a:b"}}, nil); got.Status != Fail {
		t.Errorf("roles: got %s (%s)", got.Status, got.Message)
	}
	if got := judgeOne(t, source, &Request{Admission: create(object(t, `{}`))}, nil); got.Status != Error {
		t.Errorf("no roles: got %s (%s)", got.Status, got.Message)
	}
}

// TestCurrent pins {{ @ }}: two keys of the place where it stands do not count.
func TestCurrent(t *testing.T) {
	got := widgetStatus(t, `validate: {pattern: {spec: {m: {k: "{{ @ }}"}}}}`, `{k: v, spec: {m: {k: v}}}`)
	if got.Status != Pass {
		t.Errorf("got %s (%s)", got.Status, got.Message)
	}
	old := object(t, `{metadata: {name: w}}`)
	source := widgetPolicy(`validate: {deny: {conditions: {all: [{key: "{{ @ }}", operator: Equals, value: {metadata: {name: w}}}]}}}`)
	if got := judgeOne(t, source, &Request{Admission: admissionRequest("DELETE", nil, old)}, nil); got.Status != Fail {
		t.Errorf("DELETE: got %s (%s)", got.Status, got.Message)
	}
}
