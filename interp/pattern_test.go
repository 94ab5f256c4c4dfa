package interp

import (
	"context"
	"strings"
	"testing"
)

// TestScalars holds {spec: {x: VALUE}} to {spec: {x: PATTERN}}.
func TestScalars(t *testing.T) {
	const missing = ""
	tests := []struct {
		pattern, value string
		want           Status
		path           string
	}{
		{`"?*"`, missing, Fail, ""},
		{`"*"`, missing, Fail, "/spec/"},
		{`"*"`, `{}`, Pass, ""},
		{`"*"`, `[]`, Pass, ""},
		{`"*"`, `null`, Fail, "/spec/"},
		{`null`, missing, Pass, ""},
		{`null`, `0`, Pass, ""},
		{`null`, `""`, Pass, ""},
		{`null`, `false`, Pass, ""},
		{`null`, `{}`, Fail, ""},
		{`null`, `[]`, Pass, ""},
		{`0`, missing, Fail, ""},
		{`"0"`, missing, Pass, ""},
		{`"<10"`, missing, Pass, ""},
		{`">0"`, missing, Fail, ""},
		{`"!5"`, missing, Pass, ""},
		{`"!foo"`, missing, Fail, ""},
		{`""`, missing, Fail, ""},
		{`"1-5"`, `1`, Pass, ""},
		{`"1-5"`, `5`, Pass, ""},
		{`"1-5"`, missing, Fail, ""},
		{`"10!-20"`, `5`, Pass, ""},
		{`"10!-20"`, `15`, Fail, ""},
		{`"5"`, `5`, Pass, ""},
		{`"5"`, `"5"`, Pass, ""},
		{`"5"`, `5.0`, Pass, ""},
		{`"5"`, `"5.0"`, Pass, ""},
		{`"5"`, `5000m`, Pass, ""},
		{`5`, `"5"`, Pass, ""},
		{`5`, `"5.0"`, Fail, ""},
		{`"1.10"`, `"1.1"`, Pass, ""},
		{`"<=1Gi"`, `"1024Mi"`, Pass, ""},
		{`"<=60s"`, `"1m"`, Pass, ""},
		{`"<=60s"`, `30`, Fail, ""},
		{`"<1h"`, `0`, Fail, "/spec/x/"}, // deviation 15: a number is no duration
		{`"<1h"`, missing, Pass, ""},
		{`true`, `"true"`, Fail, ""},
		{`"true"`, `true`, Pass, ""},
		{`"80*"`, `8080`, Pass, ""},
		{`"a|b"`, `"b"`, Pass, ""},
		{`"!a & !b"`, `"c"`, Pass, ""},
		{`"!a|!b"`, `"a"`, Pass, ""},
		{`"foo"`, `["foo","foo"]`, Pass, ""},
		{`"foo"`, `[]`, Pass, ""},
		{`"foo"`, `{"a":1}`, Fail, ""},
		{`["a"]`, `["a","b"]`, Fail, ""},
		{`["a","b"]`, `["a"]`, Pass, ""},
		{`[{"n":"a"},{"n":"b"}]`, `[{"n":"a"}]`, Pass, ""},
		{`[]`, `[1]`, Fail, ""},
		{`[[1,2]]`, `[[1]]`, Pass, ""},
		{`[[1],[2]]`, `[[1]]`, Error, ""},
		{`[[1]]`, `[[1],[9]]`, Pass, ""},
		// beyond the published vectors
		{`"a|b&c"`, `"a"`, Pass, ""},
		{`"a|b"`, `"a|b"`, Fail, "/spec/x/"}, // deviation 13, and below
		{`"!*:latest"`, `"!*:latest"`, Fail, "/spec/x/"},
		{`"1-5"`, `"1-5"`, Fail, "/spec/x/"},
		{`"x*"`, `"x*"`, Pass, ""},
		{`"*"`, `"x"`, Pass, ""},
		{`"!"`, `"!"`, Pass, ""},
		{`"-5--1"`, `-3`, Pass, ""},
		{`"1h30m-2h"`, `"1h45m"`, Fail, ""},
		{`"1Mi-1Gi"`, `"512Mi"`, Pass, ""},
		{`"1e3"`, `1000`, Pass, ""},
		{`"!5"`, `"five"`, Pass, ""},
		{`"!*"`, `null`, Fail, ""},
		{`5`, `5.0`, Pass, ""},
		{`5.0`, `5`, Pass, ""},
		{`5.5`, `"5.50"`, Pass, ""},
		{`1.5`, `1`, Fail, ""},
		{`"1.5"`, `1.5`, Pass, ""},
		{`false`, `false`, Pass, ""},
		{`false`, missing, Fail, ""},
	}
	for _, tt := range tests {
		t.Run(tt.pattern+" of "+tt.value, func(t *testing.T) {
			object := `{spec: {}}`
			if tt.value != missing {
				object = `{spec: {x: ` + tt.value + `}}`
			}
			got := widgetStatus(t, `validate: {pattern: {spec: {x: `+tt.pattern+`}}}`, object)
			if got.Status != tt.want || !strings.Contains(got.Message, tt.path) {
				t.Errorf("want %s at %q, got %s (%s)", tt.want, tt.path, got.Status, got.Message)
			}
		})
	}
}

// TestWholeFloats pins deviation 7: Kyverno prints 8080.0 as 8.08E+03, so that
// the pattern 80* fails; here whole numbers print alike, whatever type they had.
func TestWholeFloats(t *testing.T) {
	got := matchPattern(context.Background(), reading{}, map[string]any{"x": 8080.0}, map[string]any{"x": "80*"}, 10)
	if got.status != Pass {
		t.Errorf("got %s: %s", got.status, got.text)
	}
	if got := matchPattern(context.Background(), reading{}, map[string]any{"x": 1.5}, map[string]any{"x": "1.5E+*"}, 10); got.status != Pass {
		t.Errorf("a fraction prints with an exponent; got %s: %s", got.status, got.text)
	}
}

func TestAnchors(t *testing.T) {
	tests := []struct {
		pattern, object string
		want            Status
		kyverno         Status // if it differs
		path            string
	}{
		{`{(a): 1, b: 2}`, `{a: 1, b: 3}`, Fail, "", "/spec/b/"},
		{`{(a): 1, b: 2}`, `{a: 2, b: 3}`, Skip, "", ""},
		{`{(a): 1, b: 2}`, `{b: 3}`, Skip, "", ""},
		{`{(a): 1, (b): 2, c: 3}`, `{a: 1, b: 9, c: 9}`, Skip, "", ""},
		{`{=(a): 1}`, `{}`, Pass, "", ""},
		{`{=(a): 1}`, `{a: 2}`, Fail, "", ""},
		{`{=(a): "*"}`, `{a: {}}`, Fail, "", ""},
		{`{=(a): {=(b): "x"}}`, `{a: null}`, Fail, "", ""},
		{`{X(a): "null"}`, `{a: null}`, Fail, "", ""},
		{`{X(a): null}`, `{}`, Pass, "", ""},
		{`{(a): 1, X(b): null}`, `{a: 2, b: 1}`, Skip, "", ""},
		{`{^(l): [{nm: "x"}]}`, `{}`, Pass, "", ""},
		{`{^(l): [{nm: "x"}]}`, `{l: []}`, Fail, "", ""},
		{`{^(l): [{nm: "x"}, {nm: "y"}]}`, `{l: [{nm: x}, {nm: "y"}, {nm: z}]}`, Pass, "", ""},
		{`{^(l): [{nm: "x"}], r: 3}`, `{r: 4}`, Fail, Error, ""}, // deviation 2
		{`{l: [{(nm): "x", v: 1}]}`, `{l: [{nm: "y", v: 2}, {nm: x, v: 1}]}`, Pass, "", ""},
		{`{l: [{(nm): "x", v: 1}]}`, `{l: [{nm: "y", v: 2}]}`, Skip, "", ""},
		{`{l: [{(nm): "x", v: 1}]}`, `{l: []}`, Pass, "", ""},
		{`{l: [{(nm): "x", v: 1}]}`, `{l: [{nm: x, v: 2}]}`, Fail, "", "/spec/l/0/v/"},
		{`{l: [{(nm): "x", v: 1}]}`, `{l: [{v: 2}, {nm: x, v: 2}]}`, Fail, "", "/spec/l/1/v/"},
		{`{<(a): 1, b: 2}`, `{b: 3}`, Fail, "", "/spec/b/"},
		{`{<(a): 1, b: 2}`, `{a: 9, b: 3}`, Skip, "", ""},
		{`{l: [{<(nm): "x*"}], m: 1}`, `{l: [{nm: xa}, {nm: zz}], m: 2}`, Fail, "", "/spec/m/"},
		{`{l: [{<(nm): "x*"}], m: 1}`, `{l: [{nm: zz}], m: 2}`, Skip, "", ""},
		{`{m: {(k): 1}, s: {(j): 1, z: 2}}`, `{m: {k: 9}, s: {j: 1, z: 9}}`, Fail, "", "/spec/s/z/"},
		{`{m: {(k): 1}, s: {z: 2}}`, `{m: {k: 9}, s: {z: 9}}`, Skip, "", ""},
		{`{=(a): {(b): 1}, =(c): 2, d: 3}`, `{a: {b: 9}, d: 9}`, Fail, "", "/spec/d/"},
		{`{=(a): {(b): 1}, d: 3}`, `{a: {b: 9}, d: 9}`, Skip, "", ""},
		// beyond the published vectors
		{`{" (a) ": 1, b: 2}`, `{a: 2, b: 3}`, Skip, "", ""},
		{`{(a): "conditional anchor mismatch", b: x}`, `{a: "conditional anchor mismatch", b: "global anchor mismatch"}`, Fail, "", "/spec/b/"}, // deviation 1
		{`{^(l): {nm: x}}`, `{l: [{nm: x}]}`, Fail, "", ""},
		{`{^(l): [{nm: x}]}`, `{l: {nm: x}}`, Fail, "", ""},
		{`{^(l): [{(nm): x, v: 1}]}`, `{l: [{nm: "y", v: 1}]}`, Fail, "", ""},
		{`{=(l): [{X(h): null}]}`, `{l: [{}, {h: 1}]}`, Fail, "", "/spec/l/1/h/"},
		{`{(a): {X(b): null}, c: 1}`, `{a: {b: 1}, c: 2}`, Skip, "", ""},
		{`{=(a): {<(b): 1}, =(c): 2, d: 3}`, `{a: {b: 9}, d: 9}`, Skip, "", ""}, // a global skip stays direct
	}
	for _, tt := range tests {
		t.Run(tt.pattern+" of "+tt.object, func(t *testing.T) {
			got := widgetStatus(t, `validate: {pattern: {spec: `+tt.pattern+`}}`, `{spec: `+tt.object+`}`)
			kyverno := tt.kyverno
			if kyverno == "" {
				kyverno = tt.want
			}
			if got.Status != tt.want || got.Kyverno != kyverno || !strings.Contains(got.Message, tt.path) {
				t.Errorf("want %s/%s at %q, got %s/%s (%s)", tt.want, kyverno, tt.path, got.Status, got.Kyverno, got.Message)
			}
		})
	}
}

// TestTags pins keys with wildcards under labels and annotations (deviation 3).
func TestTags(t *testing.T) {
	tests := []struct {
		note, labels, object string
		want                 Status
	}{
		{"some key that matches does", `{"app*": good}`, `{app1: bad, app2: good}`, Pass},
		{"none does", `{"app*": good}`, `{app1: bad}`, Fail},
		{"none matches", `{"app*": "?*"}`, `{tier: a}`, Fail},
		{"conditional: some", `{(app*): good, tier: a}`, `{app1: bad, app2: good, tier: b}`, Fail},
		{"conditional: none", `{(app*): good, tier: a}`, `{app1: bad, tier: b}`, Skip},
		{"negation: one is there", `{"X(app*)": "?*"}`, `{tier: a, app1: x}`, Fail},
		{"negation: none is there", `{"X(app*)": "?*"}`, `{tier: a}`, Pass},
		{"equality: some that is there", `{"=(app*)": good}`, `{app1: bad, app2: good}`, Fail},
		{"equality: some that is there, the other way round", `{"=(app*)": good}`, `{app1: good, app2: bad}`, Fail},
		{"equality: all that are there", `{"=(app*)": good}`, `{app1: good, app2: good, tier: bad}`, Pass},
		{"equality: none that is there", `{"=(app*)": good}`, `{app1: bad, app2: bad}`, Fail},
		{"global: some", `{<(app*): good, tier: a}`, `{app1: bad, app2: good, tier: b}`, Fail},
		{"global: none", `{<(app*): good, tier: a}`, `{app1: bad, tier: b}`, Skip},
		{"equality: none is there", `{"=(app*)": good}`, `{tier: a}`, Pass},
		{"values that are no strings do not count", `{app: 5}`, `{tier: a}`, Pass},
		{"unless beside a wildcard", `{app: 5, "t*": "?*"}`, `{tier: a}`, Fail},
	}
	for _, tt := range tests {
		t.Run(tt.note, func(t *testing.T) {
			for _, where := range []string{"", "annotations"} {
				field := "labels"
				if where != "" {
					field = where
				}
				got := widgetStatus(t, `validate: {pattern: {metadata: {`+field+`: `+tt.labels+`}}}`, `{metadata: {`+field+`: `+tt.object+`}}`)
				if got.Status != tt.want {
					t.Errorf("%s: want %s, got %s (%s)", field, tt.want, got.Status, got.Message)
				}
			}
		})
	}
	if got := widgetStatus(t, `validate: {pattern: {spec: {labels: {"a*": b}}}}`, `{spec: {labels: {ab: b}}}`); got.Status != Fail {
		t.Errorf("elsewhere wildcards in keys are text; got %s", got.Status)
	}
	if got := widgetStatus(t, `validate: {pattern: {spec: {template: {metadata: {labels: {"a*": b}}}}}}`, `{spec: {template: {metadata: {labels: {ab: b}}}}}`); got.Status != Pass {
		t.Errorf("any metadata counts; got %s (%s)", got.Status, got.Message)
	}
}

func TestAnyPattern(t *testing.T) {
	tests := []struct {
		patterns, object string
		want             Status
		message          string
	}{
		{`[{spec: {x: 1}}, {spec: {w: 1}}]`, `{spec: {w: 1}}`, Pass, "validation rule 'r' anyPattern[1] passed."},
		{`[{spec: {x: 1}}, {spec: {w: 1}}]`, `{spec: {}}`, Fail, "validation error: m. rule r[0] failed at path /spec/x/ rule r[1] failed at path /spec/w/"},
		{`[{spec: {(x): 1}}, {spec: {w: 1}}]`, `{spec: {}}`, Fail, "validation error: m. rule r[1] failed at path /spec/w/"},
		{`[{spec: {(x): 1}}, {spec: {(w): 1}}]`, `{spec: {}}`, Skip, ""},
		{`[{spec: {^(x): [{a: b}], w: 1}}]`, `{spec: {}}`, Fail, ""},
		{`[{spec: {x: 5}}]`, `{spec: {x: "5.0"}}`, Pass, ""}, // its numbers are no integers
	}
	for _, tt := range tests {
		t.Run(tt.patterns+" of "+tt.object, func(t *testing.T) {
			got := widgetStatus(t, `validate: {message: m, anyPattern: `+tt.patterns+`}`, tt.object)
			if got.Status != tt.want || tt.message != "" && got.Message != tt.message {
				t.Errorf("want %s (%s), got %s (%s)", tt.want, tt.message, got.Status, got.Message)
			}
		})
	}
}

func TestPatternMessages(t *testing.T) {
	tests := []struct{ message, want string }{
		{``, "validation error: rule r failed at path /spec/x/"},
		{`Not so`, "validation error: Not so. rule r failed at path /spec/x/"},
		{`Not so.`, "validation error: Not so. rule r failed at path /spec/x/"},
		{`Not {{ request.object.spec.x }}`, "validation error: Not 2. rule r failed at path /spec/x/"},
		{`Not {{ request.object.spec.z }}`, "validation error: variables substitution error in rule r execution error: "},
	}
	for _, tt := range tests {
		got := widgetStatus(t, `validate: {message: "`+tt.message+`", pattern: {spec: {x: 1}}}`, `{spec: {x: 2}}`)
		if got.Status != Fail || !strings.HasPrefix(got.Message, tt.want) {
			t.Errorf("%q: want %s, got %s (%s)", tt.message, tt.want, got.Status, got.Message)
		}
	}
	got := widgetStatus(t, `validate: {message: "{{ request.object.spec.x }}", pattern: {spec: {x: 1}}}`, `{spec: {x: 2}}`)
	if got.Status != Error {
		t.Errorf("a message that is no string is an error (deviation 4); got %s (%s)", got.Status, got.Message)
	}
}

// A pattern of which nothing applies says why, of each element that it passed over.
func TestSkipMessages(t *testing.T) {
	got := widgetStatus(t, `validate: {pattern: {spec: {=(a): [{(x): 1, y: 2}], =(b): [{(x): 1, y: 2}]}}}`, `{spec: {a: [{x: 7}], b: [{x: 8}, {x: 9}]}}`)
	want := "conditional anchor mismatch: resource value '7' does not match '1' at path /spec/a/0/x/; " +
		"conditional anchor mismatch: resource value '8' does not match '1' at path /spec/b/0/x/; " +
		"conditional anchor mismatch: resource value '9' does not match '1' at path /spec/b/1/x/"
	if got.Status != Skip || got.Message != want {
		t.Errorf("%s: %s", got.Status, got.Message)
	}
	long := widgetStatus(t, `validate: {pattern: {spec: {a: [{(x): 1, y: 2}]}}}`, `{spec: {a: [`+strings.Repeat("{x: 7}, ", 100)+`]}}`)
	if n := strings.Count(long.Message, "; ") + 1; long.Status != Skip || n != maxSkips {
		t.Errorf("%s: %d of 100 elements are told of", long.Status, n)
	}
}

// TestReferences pins $( ), which points at the pattern's own leaves.
func TestReferences(t *testing.T) {
	tests := []struct {
		note, pattern, object string
		want                  Status
	}{
		{"relative", `{a: "x", b: "$(./../a)"}`, `{a: x, b: x}`, Pass},
		{"relative, not so", `{a: "x", b: "$(./../a)"}`, `{a: x, b: y}`, Fail},
		{"absolute", `{a: "x", b: "$(/spec/a)"}`, `{a: x, b: x}`, Pass},
		{"with an operator", `{a: 10, b: "$(<=./../a)"}`, `{a: 10, b: 7}`, Pass},
		{"with an operator, not so", `{a: 10, b: "$(<=./../a)"}`, `{a: 10, b: 11}`, Fail},
		{"in front of it", `{a: "10", b: "<=$(./../a)"}`, `{a: 10, b: 11}`, Fail},
		{"at a variable", `{a: "{{ request.operation }}", b: "$(./../a)"}`, `{a: CREATE, b: CREATE}`, Pass},
		{"at nothing", `{b: "$(./../a)"}`, `{b: x}`, Error},
		{"at a number", `{a: 1, b: "$(./../a)"}`, `{a: 1, b: 1}`, Error},
		{"out of an anchor", `{=(m): {a: x, b: "$(./../a)"}}`, `{m: {a: x, b: x}}`, Error},
		{"escaped", `{b: "\\$(x)"}`, `{b: "$(x)"}`, Pass},
	}
	for _, tt := range tests {
		t.Run(tt.note, func(t *testing.T) {
			got := widgetStatus(t, `validate: {pattern: {spec: `+tt.pattern+`}}`, `{spec: `+tt.object+`}`)
			if got.Status != tt.want {
				t.Errorf("want %s, got %s (%s)", tt.want, got.Status, got.Message)
			}
		})
	}
}

func TestPatternDepth(t *testing.T) {
	nested := func(n int) any {
		var v any = "x"
		for range n {
			v = map[string]any{"a": v}
		}
		return v
	}
	if got := matchPattern(context.Background(), reading{}, nested(20), nested(20), 10); got.status != Error {
		t.Errorf("got %s", got.status)
	}
	if got := matchPattern(context.Background(), reading{}, nested(20), nested(20), 30); got.status != Pass {
		t.Errorf("got %s (%s)", got.status, got.text)
	}
}

func TestPatternOperations(t *testing.T) {
	source := widgetPolicy(`validate: {pattern: {spec: {x: 1}}}`)
	old := object(t, `{spec: {x: 2}}`)
	if got := judgeOne(t, source, &Request{Admission: admissionRequest("UPDATE", old, old)}, nil); got.Status != Fail {
		t.Errorf("UPDATE: got %s", got.Status)
	}
}

// TestDeletionNeedsACheck pins deviation 12: a rule that has nothing to check on
// DELETE cannot err there either.
func TestDeletionNeedsACheck(t *testing.T) {
	const errs = "preconditions: {all: [{key: \"{{ nothing }}\", operator: Equals, value: x}]}\n"
	for _, tt := range []struct {
		validate string
		want     Status
	}{
		{`pattern: {spec: {x: 1}}`, None},
		{`anyPattern: [{spec: {x: 1}}]`, None},
		{`podSecurity: {level: baseline}`, None},
		{`deny: {}`, Error},
		{`foreach: [{list: request.oldObject.spec.l, pattern: {x: 1}}]`, Error},
	} {
		source := widgetPolicy(errs + "validate: {" + tt.validate + "}")
		got := judgeOne(t, source, &Request{Admission: admissionRequest("DELETE", nil, object(t, `{spec: {x: 2}}`))}, nil)
		if got.Status != tt.want {
			t.Errorf("%s: want %s, got %s (%s)", tt.validate, tt.want, got.Status, got.Message)
		}
	}
}
