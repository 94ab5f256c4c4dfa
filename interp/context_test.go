package interp

import (
	"context"
	"strings"
	"testing"
)

// shows judges by a rule whose message is an expression.
func shows(t *testing.T, entries, expression string, world World, limits Limits) RuleResult {
	t.Helper()
	f := parse(t, widgetPolicy("context:\n"+entries+"\nvalidate: {message: \"<{{ "+expression+" }}>\", deny: {conditions: {all: [{key: \"{{ "+expression+" }}\", operator: NotEquals, value: \"nothing\"}]}}}"))
	admission := create(map[string]any{"metadata": map[string]any{"name": "a", "namespace": "team"}, "spec": map[string]any{"x": "one", "l": []any{"p", "q"}}})
	if world == nil {
		world = &Offline{}
	}
	return New(f.Policies, nil, world, limits).Judge(context.Background(), &Request{Admission: admission})[0]
}

func TestContextEntries(t *testing.T) {
	world := &Offline{
		Objects: []map[string]any{
			{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "m", "namespace": "default"}, "data": map[string]any{"k": "v", "list": `["a"]`}},
		},
		Answers: map[string][]byte{
			"/api/v1/pods":           []byte(`{"items": [{"n": 1}, {"n": 2}]}`),
			"/api/v1/namespaces/one": []byte(`{"name": "one"}`),
			"https://svc/x":          []byte(`{"ok": true}`),
		},
		Images:  map[string]map[string]any{"nginx": {"configData": map[string]any{"config": map[string]any{"User": "root"}}}},
		Globals: map[string]any{"pods": []any{"a", "b"}},
	}
	tests := []struct {
		note, entries, expression, want string
		status                          Status
	}{
		{"value", `- {name: c, variable: {value: v}}`, "c", "v", Fail},
		{"a value of several parts", `- {name: c, variable: {value: {a: ["{{ request.object.spec.x }}", 2]}}}`, "to_string(c)", `{"a":["one",2]}`, Fail},
		{"value and query", `- {name: c, variable: {value: {a: 1}, jmesPath: a}}`, "c", "1", Fail},
		{"value and query that errs", `- {name: c, variable: {value: {a: 1}, jmesPath: b, default: d}}`, "c", "d", Fail},
		{"value and query that gives null: no default", `- {name: c, variable: {value: {a: null}, jmesPath: a, default: d}}`, "c", "", Error},
		{"query", `- {name: c, variable: {jmesPath: request.object.spec.x}}`, "c", "one", Fail},
		{"query with a variable", `- {name: c, variable: {jmesPath: "request.object.spec.{{ 'x' }}"}}`, "c", "one", Fail},
		{"default of a missing key", `- {name: c, variable: {jmesPath: request.object.spec.zz, default: d}}`, "c", "d", Fail},
		{"default of a null", `- {name: c, variable: {jmesPath: request.oldObject, default: d}}`, "c", "d", Fail},
		{"no default", `- {name: c, variable: {jmesPath: request.object.spec.zz}}`, "c", "", Error},
		{"an empty string is a result", `- {name: c, variable: {jmesPath: "''", default: d}}`, "c", "", Fail},
		{"default alone", `- {name: c, variable: {default: d}}`, "c", "d", Fail},
		{"entries see those before", "- {name: a, variable: {value: v}}\n- {name: b, variable: {jmesPath: a}}", "b", "v", Fail},
		{"but not those behind", "- {name: b, variable: {jmesPath: a}}\n- {name: a, variable: {value: v}}", "b", "", Error},
		{"an entry that is not used may err", "- {name: a, variable: {jmesPath: zz}}\n- {name: b, variable: {value: v}}", "b", "v", Fail},
		{"an entry that is named errs, used or not", "- {name: a, variable: {jmesPath: zz}}\n- {name: b, variable: {value: v}}", "b || a", "", Error},
		{"even in a string", "- {name: a, variable: {jmesPath: zz}}\n- {name: b, variable: {value: v}}", "b || 'a'", "", Error},
		{"a variable replaces", "- {name: a, variable: {value: {x: 1}}}\n- {name: a, variable: {value: {z: 2}}}", "to_string(a)", `{"z":2}`, Fail},

		{"config map", `- {name: c, configMap: {name: m, namespace: default}}`, "c.data.k", "v", Fail},
		{"config map of the default namespace", `- {name: c, configMap: {name: m}}`, "c.metadata.name", "m", Fail},
		{"config map merges", "- {name: c, variable: {value: {data: {z: 1}}}}\n- {name: c, configMap: {name: m}}", "to_string(c.data)", `{"k":"v","list":"[\"a\"]","z":1}`, Fail},
		{"config map by variable", `- {name: c, configMap: {name: "{{ 'm' }}"}}`, "c.data.k", "v", Fail},
		{"missing config map", `- {name: c, configMap: {name: zz}}`, "c.data.k", "", Error},
		{"key missing in a config map", `- {name: c, configMap: {name: m}}`, "c.data.zz", "", Error},

		{"apiCall", `- {name: c, apiCall: {urlPath: /api/v1/pods, jmesPath: "items[].n"}}`, "length(c)", "2", Fail},
		{"apiCall by variable", `- {name: c, apiCall: {urlPath: "/api/v1/namespaces/{{ request.object.spec.x }}"}}`, "c.name", "one", Fail},
		{"apiCall without an answer", `- {name: c, apiCall: {urlPath: /zz}}`, "c", "", Error},
		{"apiCall with a default", `- {name: c, apiCall: {urlPath: /zz, default: {n1: 1}, jmesPath: zz}}`, "to_string(c)", `{"n1":1}`, Fail},
		{"the default does not help the query", `- {name: c, apiCall: {urlPath: /api/v1/pods, default: d, jmesPath: zz}}`, "c", "", Error},
		{"service", `- {name: c, apiCall: {service: {url: "https://svc/x"}, jmesPath: ok}}`, "c", "true", Fail},

		{"image data", `- {name: c, imageRegistry: {reference: nginx, jmesPath: configData.config.User}}`, "c", "root", Fail},
		{"global reference", `- {name: c, globalReference: {name: pods, jmesPath: "length(@)"}}`, "c", "2", Fail},
		{"missing global reference", `- {name: c, globalReference: {name: zz}}`, "c", "", Error},
	}
	for _, tt := range tests {
		t.Run(tt.note, func(t *testing.T) {
			got := shows(t, tt.entries, tt.expression, world, Limits{})
			if got.Status != tt.status || tt.status == Fail && got.Message != "<"+tt.want+">" {
				t.Errorf("want %s <%s>, got %s %s", tt.status, tt.want, got.Status, got.Message)
			}
		})
	}
}

func TestContextLimits(t *testing.T) {
	world := &Offline{Answers: map[string][]byte{"/a": []byte(`"` + strings.Repeat("x", 1000) + `"`)}}
	entry := `- {name: c, apiCall: {urlPath: /a}}`
	if got := shows(t, entry, "length(c)", world, Limits{}); got.Message != "<1000>" {
		t.Errorf("got %s %s", got.Status, got.Message)
	}
	if got := shows(t, entry, "length(c)", world, Limits{Context: 500}); got.Status != Error || !strings.Contains(got.Message, "limit") {
		t.Errorf("got %s %s", got.Status, got.Message)
	}
	if got := shows(t, entry, "length(c)", world, Limits{Response: 500}); got.Status != Error || !strings.Contains(got.Message, "limit of 500") {
		t.Errorf("got %s %s", got.Status, got.Message)
	}
	if got := shows(t, entry, "length(c)", world, Limits{Context: -1, Response: -1}); got.Message != "<1000>" {
		t.Errorf("got %s %s", got.Status, got.Message)
	}
}

// TestNamespacedContext pins that a Policy reads its own namespace only.
func TestNamespacedContext(t *testing.T) {
	world := &Offline{
		Objects: []map[string]any{
			{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "m", "namespace": "team"}, "data": map[string]any{"k": "mine"}},
			{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "m", "namespace": "other"}, "data": map[string]any{"k": "theirs"}},
		},
		Answers: map[string][]byte{"/api/v1/namespaces/team/pods": []byte(`"k"`), "/api/v1/pods": []byte(`"k"`), "https://svc": []byte(`"k"`)},
	}
	tests := []struct {
		note, entry, expression string
		want                    Status
	}{
		{"its own", `{name: c, configMap: {name: m}}`, "c.data.k", Fail},
		{"another's", `{name: c, configMap: {name: m, namespace: other}}`, "c.data.k", Error},
		{"its own path", `{name: c, apiCall: {urlPath: /api/v1/namespaces/team/pods}}`, "c", Fail},
		{"another path", `{name: c, apiCall: {urlPath: /api/v1/pods}}`, "c", Error},
		{"a path that leaves", `{name: c, apiCall: {urlPath: /api/v1/namespaces/team/../../pods}}`, "c", Error},
		{"services never", `{name: c, apiCall: {service: {url: "https://svc"}}}`, "c", Error},
	}
	for _, tt := range tests {
		t.Run(tt.note, func(t *testing.T) {
			source := widgetPolicy("context: [" + tt.entry + "]\nvalidate: {deny: {conditions: {all: [{key: \"{{ " + tt.expression + " }}\", operator: NotEquals, value: \"nothing\"}]}}}")
			source = strings.Replace(strings.Replace(source, "ClusterPolicy", "Policy", 1), "{name: p}", "{name: p, namespace: team}", 1)
			got := judgeOne(t, source, &Request{Admission: create(object(t, `{metadata: {name: a, namespace: team}}`))}, world)
			if got.Status != tt.want {
				t.Errorf("want %s, got %s (%s)", tt.want, got.Status, got.Message)
			}
		})
	}
}

// No variable leads the call of any policy up and away from what it asks for.
func TestCallStaysBelow(t *testing.T) {
	world := &Offline{Answers: map[string][]byte{
		"/api/v1/namespaces/team/configmaps/mine": []byte(`"k"`), "/api/v1/namespaces/team/secrets/theirs": []byte(`"k"`), "/api/v1/namespaces/team/configmaps": []byte(`"k"`),
	}}
	for name, want := range map[string]Status{
		"mine": Fail, "/mine": Fail, "": Fail, "../secrets/theirs": Error, "./mine": Error, "x/../mine": Error, "..": Error,
	} {
		source := widgetPolicy(`context: [{name: c, apiCall: {urlPath: "/api/v1/namespaces/team/configmaps/{{ request.object.spec.ref }}"}}]
validate: {deny: {conditions: {all: [{key: "{{ c }}", operator: NotEquals, value: "nothing"}]}}}`)
		got := judgeOne(t, source, &Request{Admission: create(object(t, `{metadata: {name: a, namespace: team}, spec: {ref: "`+name+`"}}`))}, world)
		if got.Status != want {
			t.Errorf("%q: want %s, got %s (%s)", name, want, got.Status, got.Message)
		}
	}
}

func TestNames(t *testing.T) {
	tests := []struct {
		text, name string
		want       bool
	}{
		{"c", "c", true}, {"c.x", "c", true}, {"x.c", "c", false}, {"x || c", "c", true}, {"(c)", "c", true}, {"xc", "c", false},
		{"c1", "c", false}, {"_c", "c", true}, {"c_", "c", false}, {`"c"`, "c", true}, {"x.c || c", "c", true}, {"1c", "c", false}, {"", "c", false}, {"c-d", "c-d", true},
	}
	for _, tt := range tests {
		if got := hasWord(tt.text, tt.name); got != tt.want {
			t.Errorf("%q names %q: want %v", tt.text, tt.name, tt.want)
		}
	}
}

// TestSubstitutedOnce pins deviation 5: what a variable gives is not searched for
// variables.
func TestSubstitutedOnce(t *testing.T) {
	admission := create(object(t, `{spec: {x: "{{ request.operation }}"}}`))
	got := judgeOne(t, widgetPolicy(`validate: {message: "{{ request.object.spec.x }}", deny: {}}`), &Request{Admission: admission}, nil)
	if got.Message != "{{ request.operation }}" {
		t.Errorf("got %q", got.Message)
	}
}
