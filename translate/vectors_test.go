package translate_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/kvap/kvap/vap/apiserver"
)

// A vector is a row of the semantics: what a rule says of an object. A status is
// pass, skip, fail or error; webhook and its codes where there is no native form.
type vector struct{ rule, object, want string }

// widget is a custom resource without a schema, so nothing is known of its fields.
func widget(spec string) string {
	return fmt.Sprintf(`{"apiVersion":"x.io/v1","kind":"Widget","metadata":{"name":"w","namespace":"app"},"spec":%s}`, spec)
}

func widgetPolicy(validate string) string {
	return fmt.Sprintf(`
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: p}
spec:
  validationFailureAction: Enforce
  rules:
    - name: r
      match: {any: [{resources: {kinds: [x.io/v1/Widget]}}]}
      validate: %s
`, validate)
}

func (v vector) judge(t *testing.T) {
	t.Helper()
	p := translateText(t, widgetPolicy(v.rule), setting{})
	// The kind is not known, nor how large it may be; and what a rule means for other operations is not asked.
	got := strings.NewReplacer(" KV302", "", " KV315", "", " KV317", "", " KV312", "").Replace(p.targets())
	if got == "native" {
		outcome, _, message := p.verdict(t, widgetRequest(t, v.object))
		if satisfies(outcome, v.want) {
			return
		}
		got = fmt.Sprintf("%s (%s)", outcome, message)
	}
	if got != v.want {
		t.Errorf("%s on %s: got %s, want %s\n%v", v.rule, v.object, got, v.want, p.result.Diagnostics)
	}
}

// widgetRequest creates a widget. Its numbers are those of a request: whole ones
// are integers, unless they are written with a point.
func widgetRequest(t *testing.T, spec string) *admissionv1.AdmissionRequest {
	t.Helper()
	r := objectRequest(t, "CREATE", widget("{}"), "")
	if !json.Valid([]byte(spec)) {
		data, err := yaml.YAMLToJSON([]byte(spec))
		if err != nil {
			t.Fatal(err)
		}
		spec = string(data)
	}
	r.Object = runtime.RawExtension{Raw: []byte(widget(spec))}
	return r
}

// satisfies tells whether an outcome is what a status asks for. What errs in
// Kyverno may be a denial: both keep the object out.
func satisfies(got apiserver.Outcome, want string) bool {
	switch want {
	case "pass", "skip":
		return got == apiserver.Allow || got == apiserver.NoMatch
	case "fail":
		return got == apiserver.Deny
	case "error":
		return got == apiserver.Deny || got == apiserver.Error
	}
	return false
}

// missing is the value of a field that is not there.
const missing = "-"

func TestScalarVectors(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		pattern string
		values  string // separated by blanks
		want    string
	}{
		{`"?*"`, missing, "fail"},
		{`"*"`, missing, "fail"},
		{`"*"`, `{} []`, "pass"},
		{`"*"`, `null`, "fail"},
		{`null`, missing, "pass"},
		{`null`, `0 "" false`, "pass"},
		{`null`, `{}`, "fail"},
		{`null`, `[]`, "pass"},
		{`0`, missing, "fail"},
		{`"0"`, missing, "pass"},
		{`"<10"`, missing, "pass"},
		{`">0"`, missing, "fail"},
		{`"!5"`, missing, "pass"},
		{`"!foo"`, missing, "fail"},
		{`""`, missing, "fail"},
		{`"1-5"`, `1 5`, "pass"},
		{`"1-5"`, missing, "fail"},
		{`"10!-20"`, `5`, "pass"},
		{`"10!-20"`, `15`, "fail"},
		{`"5"`, `5 "5" 5.0 "5.0" "5000m"`, "pass"},
		{`5`, `"5"`, "pass"},
		{`5`, `"5.0"`, "fail"},
		{`"1.10"`, `"1.1"`, "pass"},
		{`"<=1Gi"`, `"1024Mi"`, "pass"},
		{`"<=60s"`, `"1m"`, "pass"},
		{`"<=60s"`, `30`, "fail"},
		{`"<1h"`, missing, "pass"},
		{`"<1h"`, `0`, "fail"}, // deviation 15
		{`true`, `"true"`, "fail"},
		{`"true"`, `true`, "pass"},
		// one kind of number (deviation 7): whole numbers print as integers
		{`"a|b"`, `"b"`, "pass"},
		// the pattern decides also of its own text (deviation 13)
		{`"a|b"`, `"a|b"`, "fail"},
		{`"!*:latest"`, `"!*:latest"`, "fail"},
		{`">x"`, `">x"`, "fail"},
		{`"1-5"`, `"1-5"`, "fail"},
		{`"!a & !b"`, `"c"`, "pass"},
		{`"!a|!b"`, `"a"`, "pass"},
		{`"foo"`, `["foo","foo"] []`, "pass"},
		{`"foo"`, `{"a":1}`, "fail"},
		{`["a"]`, `["a","b"]`, "fail"},
		{`["a","b"]`, `["a"]`, "pass"},
		{`[{"n":"a"},{"n":"b"}]`, `[{"n":"a"}]`, "pass"},
		{`[]`, `[1]`, "fail"},
		{`[[1]]`, `[[1],[9]]`, "webhook KV201"},
	} {
		for _, value := range strings.Fields(row.values) {
			t.Run(row.pattern+" on "+value, func(t *testing.T) {
				spec := `{"x":` + value + `}`
				if value == missing {
					spec = `{}`
				}
				vector{`{pattern: {spec: {x: ` + row.pattern + `}}}`, spec, row.want}.judge(t)
			})
		}
	}
}

// (w is n in the semantics, which unquoted is a boolean in YAML.)
func TestAnchorVectors(t *testing.T) {
	t.Parallel()
	for _, v := range []vector{
		{`{(a): 1, b: 2}`, `{a: 1, b: 3}`, "fail"},
		{`{(a): 1, b: 2}`, `{a: 2, b: 3}`, "skip"},
		{`{(a): 1, b: 2}`, `{b: 3}`, "skip"},
		{`{(a): 1, (b): 2, c: 3}`, `{a: 1, b: 9, c: 9}`, "skip"},
		{`{=(a): 1}`, `{}`, "pass"},
		{`{=(a): 1}`, `{a: 2}`, "fail"},
		{`{=(a): "*"}`, `{a: {}}`, "fail"},
		{`{=(a): {=(b): "x"}}`, `{a: null}`, "fail"},
		{`{X(a): "null"}`, `{a: null}`, "fail"},
		{`{X(a): null}`, `{}`, "pass"},
		{`{^(l): [{w: "x"}]}`, `{}`, "pass"},
		{`{^(l): [{w: "x"}]}`, `{l: []}`, "fail"},
		{`{^(l): [{w: "x"}, {w: "y"}]}`, `{l: [{w: x}, {w: "y"}, {w: z}]}`, "pass"},
		{`{^(l): [{w: "x"}], r: 3}`, `{r: 4}`, "error"},
		{`{l: [{(w): "x", v: 1}]}`, `{l: [{w: "y", v: 2}, {w: x, v: 1}]}`, "pass"},
		{`{l: [{(w): "x", v: 1}]}`, `{l: [{w: "y", v: 2}]}`, "skip"},
		{`{l: [{(w): "x", v: 1}]}`, `{l: []}`, "pass"},
		{`{l: [{(w): "x", v: 1}]}`, `{l: [{w: x, v: 2}]}`, "fail"},
		{`{l: [{(w): "x", v: 1}]}`, `{l: [{v: 2}, {w: x, v: 2}]}`, "fail"},
		{`{<(a): 1, b: 2}`, `{b: 3}`, "fail"},
		{`{<(a): 1, b: 2}`, `{a: 9, b: 3}`, "skip"},
		{`{l: [{<(w): "x*"}], m: 1}`, `{l: [{w: xa}, {w: zz}], m: 2}`, "fail"},
		{`{l: [{<(w): "x*"}], m: 1}`, `{l: [{w: zz}], m: 2}`, "skip"},
		{`{m: {(k): 1}, s: {(j): 1, z: 2}}`, `{m: {k: 9}, s: {j: 1, z: 9}}`, "fail"},
		{`{m: {(k): 1}, s: {z: 2}}`, `{m: {k: 9}, s: {z: 9}}`, "skip"},
		{`{=(a): {(b): 1}, =(c): 2, d: 3}`, `{a: {b: 9}, d: 9}`, "fail"},
		{`{=(a): {(b): 1}, d: 3}`, `{a: {b: 9}, d: 9}`, "skip"},
	} {
		t.Run(v.rule+" on "+v.object, func(t *testing.T) {
			vector{`{pattern: {spec: ` + v.rule + `}}`, v.object, v.want}.judge(t)
		})
	}
}

// A condition that is true denies. Keys stand in the rule and, where JSON has
// them, in the object.
func TestConditionVectors(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		key, operator, value string
		want                 bool
	}{
		{`"nginx:latest"`, "Equals", `"*:latest"`, true},
		{`"*:latest"`, "Equals", `"nginx:latest"`, false},
		{`"abc"`, "Equals", `"*"`, true},
		{`"5"`, "Equals", `5`, false},
		{`5`, "Equals", `"5"`, true},
		{`"1Gi"`, "Equals", `"1024Mi"`, true},
		{`null`, "NotEquals", `"x"`, false},
		{`""`, "Equals", `""`, true},
		{`"5"`, "NotEquals", `""`, true},
		{`"a"`, "AnyIn", `["a","b"]`, true},
		{`["a","z"]`, "AnyIn", `["a"]`, true},
		{`["a","z"]`, "AllIn", `["a"]`, false},
		{`[]`, "AllIn", `["a"]`, true},
		{`[]`, "AnyIn", `["a"]`, false},
		{`[]`, "AllNotIn", `["a"]`, true},
		{`[]`, "AnyNotIn", `["a"]`, false},
		{`"x"`, "AnyNotIn", `"abc"`, true},
		{`"1.10"`, "GreaterThan", `"1.9"`, false},
		{`"1.10.0"`, "GreaterThan", `"1.9.0"`, true},
		{`"30m"`, "LessThan", `"1h"`, true},
		{`5`, "GreaterThan", `"1Gi"`, false},
		{`true`, "GreaterThan", `0`, false},
		// one kind of number (deviation 7): integers print as integers
		{`1000000`, "AnyIn", `[1000000]`, true},
	} {
		for _, key := range []string{row.key, `"{{ request.object.spec.k }}"`} {
			t.Run(strings.Join([]string{key, row.operator, row.value, "of", row.key}, " "), func(t *testing.T) {
				conditionVector(key, row.operator, row.value, row.key, row.want).judge(t)
			})
		}
	}
}

// A literal key keeps all its readings; a key of the request is read as the literal value
// is (deviation 15).
func TestLiteralAndRequestVectors(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		key, operator, value string
		literal, ofRequest   bool
	}{
		{`"5"`, "Equals", `"*"`, false, true},
		{`"1h"`, "Equals", `3600`, true, false},
	} {
		for key, want := range map[string]bool{row.key: row.literal, `"{{ request.object.spec.k }}"`: row.ofRequest} {
			t.Run(strings.Join([]string{key, row.operator, row.value, "of", row.key}, " "), func(t *testing.T) {
				conditionVector(key, row.operator, row.value, row.key, want).judge(t)
			})
		}
	}
}

// A text of the request that is exactly * is a pattern for the policy's words, and for
// other texts of the request, where that makes a condition true (deviation 9). Any other
// is itself.
func TestReverseWildcardVectors(t *testing.T) {
	t.Parallel()
	const key = `"{{ request.object.spec.k }}"`
	for _, row := range []struct {
		key, operator, value, k string
		want                    bool
	}{
		{`"a*"`, "AnyIn", `["abc"]`, `null`, true},
		{key, "AnyIn", `["a*"]`, `"abc"`, true},
		{key, "AnyIn", `["abc"]`, `"a*"`, false},
		{key, "AnyIn", `["abc"]`, `"*"`, true},
		{key, "AnyIn", `["a*", "x"]`, `"*"`, true},
		{key, "AnyIn", `["a*c", "x"]`, `"a*"`, false},
		{key, "AnyIn", `["abc", "x"]`, `"?"`, false},
		{key, "AnyIn", `["abc", "x"]`, `"?.*"`, false},
		{key, "AnyIn", `["a\\Eb"]`, `"**"`, false},
		{key, "AllIn", `["abc"]`, `["*", "abc"]`, true},
		{key, "AllIn", `["abc"]`, `["a*", "abc"]`, false},
		{key, "AllIn", `["abc"]`, `["a*", "b*"]`, false},
		{key, "In", `["abc"]`, `"*"`, true},
		{key, "In", `["abc"]`, `["*"]`, false}, // of lists In compares exactly
		{key, "AnyIn", `"abc"`, `"*"`, false},  // the value alone is a pattern for a single key
		{key, "AnyIn", `"abc"`, `["*"]`, true},
		{key, "AnyNotIn", `["abc"]`, `"*"`, true},
		{key, "AllNotIn", `["abc"]`, `["a*", "?bc"]`, true},
		{key, "NotIn", `["abc"]`, `"*"`, true},
		{key, "AnyNotIn", `"abc"`, `["*"]`, true},
		{`"abc"`, "AnyIn", `"{{ request.object.spec.l[*] }}"`, `null`, false},
		{`"abc"`, "AnyIn", `"{{ request.object.spec.any[*] }}"`, `null`, true},
		{`"abd"`, "AnyNotIn", `"{{ request.object.spec.l[*] }}"`, `null`, true},
		{`"abc"`, "AnyNotIn", `"{{ request.object.spec.l[*] }}"`, `null`, true},
		{key, "AnyIn", `["{{ request.object.spec.s }}", "b"]`, `"abc"`, false},
		{key, "AnyIn", `["{{ request.object.spec.star }}", "b"]`, `"abc"`, true},
		{key, "AnyIn", `["{{ request.object.spec.s }}", "b"]`, `"a*"`, true},
		{key, "AnyNotIn", `["{{ request.object.spec.s }}", "b"]`, `"abc"`, true},
	} {
		t.Run(strings.Join([]string{row.key, row.operator, row.value, "of", row.k}, " "), func(t *testing.T) {
			v := conditionVector(row.key, row.operator, row.value, row.k, row.want)
			v.object = strings.TrimSuffix(v.object, "}") + `,"l":["a*","x"],"s":"a*","any":["*"],"star":"*"}`
			v.judge(t)
		})
	}
}

func conditionVector(key, operator, value, k string, holds bool) vector {
	want := "pass"
	if holds {
		want = "fail"
	}
	rule := fmt.Sprintf(`{deny: {conditions: {all: [{key: %s, operator: %s, value: %s}]}}}`, key, operator, value)
	return vector{rule, `{"k":` + k + `}`, want}
}

// The result of a query is told by conditions: what it equals is denied; null
// makes every condition false; an error keeps the object out whatever the operator.
func TestQueryVectors(t *testing.T) {
	t.Parallel()
	const data = `{"a":{"b":null},"l":[{"x":1},{}],"n":3}`
	for _, row := range []struct{ expr, want string }{
		{"$.a.c", "error"},
		{"$.a.b.c", "null"},
		{"$.a.c || 'd'", `"d"`},
		{"$.l[*].x", `[1]`},
		{"$.l[].y", `[]`},
		{"$.z[].y", "null"},
		{"$.z[*].y", "null"},
		{"$.z[0]", "error"},
		{"$.l[?x > `0`]", `[{"x":1}]`},
		{"length($.z)", "error"},
		{"$.n > `2`", "true"},
		{"$.n > '2'", "null"},
		{"compare('a','a') == `0`", "webhook KV202"},
		{"$.z && $.n", "null"},
		{"$.n && $.z", "error"},
		{"$ | a | z", "null"},
		{"$.{p: z, q: n}", "webhook KV201"},
	} {
		t.Run(row.expr, func(t *testing.T) {
			key := fmt.Sprintf("%q", "{{ "+strings.ReplaceAll(row.expr, "$", "request.object.spec")+" }}")
			equals, differs, value := row.want, row.want, `"none"`
			switch {
			case row.want == "null":
				equals, differs = "pass", "pass"
			case row.want != "error" && !strings.HasPrefix(row.want, "webhook"):
				equals, differs, value = "fail", "pass", row.want
			}
			rule := `{deny: {conditions: {all: [{key: %s, operator: %s, value: %s}]}}}`
			vector{fmt.Sprintf(rule, key, "Equals", value), data, equals}.judge(t)
			vector{fmt.Sprintf(rule, key, "NotEquals", value), data, differs}.judge(t)
		})
	}
}
