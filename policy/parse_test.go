package policy_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/fixtures"
	"github.com/kvap/kvap/policy"
)

const small = `apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: small}
spec:
  rules:
    - name: r
      match: {any: [{resources: {kinds: [Pod]}}]}
      validate: {pattern: {spec: {x: 1}}}
`

func parseGood(t *testing.T, text string) *policy.Policy {
	t.Helper()
	f, ds := policy.Parse("p.yaml", []byte(text))
	for _, d := range ds {
		t.Errorf("%v", d)
	}
	if len(f.Policies) != 1 {
		t.Fatalf("%d policies", len(f.Policies))
	}
	return f.Policies[0]
}

// withRule is a policy around the rest of a rule.
func withRule(rest string) string {
	var b strings.Builder
	b.WriteString("apiVersion: kyverno.io/v1\nkind: ClusterPolicy\nmetadata: {name: p}\nspec:\n  rules:\n    - name: r\n")
	for line := range strings.Lines(rest) {
		b.WriteString("      " + line)
	}
	return b.String()
}

// In whatever wrapping, the same policy comes out.
func TestFormsOfFiles(t *testing.T) {
	want := parseGood(t, small)
	forms := map[string]string{
		"byte order mark":    "\ufeff" + small,
		"carriage returns":   strings.ReplaceAll(small, "\n", "\r\n"),
		"marker":             "---\n" + small,
		"marker and comment": "--- # a policy\n" + small,
		"empty documents":    "---\n---\n# nothing\n---\nnull\n---\n" + small + "---\n",
		"end marker":         small + "...\n",
		"end and more":       "# nothing\n...\n---\n" + small + "...\n# end\n",
		"directive":          "%YAML 1.1\n---\n" + small,
		"no line end":        strings.TrimSuffix(small, "\n"),
		"json": `{"apiVersion": "kyverno.io/v1", "kind": "ClusterPolicy", "metadata": {"name": "small"},
			"spec": {"rules": [{"name": "r", "match": {"any": [{"resources": {"kinds": ["Pod"]}}]},
			"validate": {"pattern": {"spec": {"x": 1}}}}]}}`,
		"flow yaml": `{apiVersion: kyverno.io/v1, kind: ClusterPolicy, metadata: {name: small}, spec: {rules: [
			{name: r, match: {any: [{resources: {kinds: [Pod]}}]}, validate: {pattern: {spec: {x: 1}}}}]}}`,
		"list":         "apiVersion: v1\nkind: List\nitems:\n- " + strings.ReplaceAll(strings.TrimSpace(small), "\n", "\n  "),
		"typed list":   "apiVersion: kyverno.io/v1\nkind: ClusterPolicyList\nitems:\n- " + strings.ReplaceAll(strings.TrimSpace(small), "\n", "\n  "),
		"list of list": `{"apiVersion": "v1", "kind": "List", "items": [{"apiVersion": "v1", "kind": "List", "items": [` + jsonSmall() + `]}]}`,
	}
	for name, text := range forms {
		t.Run(name, func(t *testing.T) {
			got := parseGood(t, text)
			if d := cmp.Diff(want, got, cmpopts.IgnoreTypes(diag.Pos{}), cmpopts.IgnoreUnexported(policy.Policy{}), cmpopts.EquateEmpty()); d != "" {
				t.Errorf("(-plain +form):\n%s", d)
			}
		})
	}
}

func jsonSmall() string {
	return `{"apiVersion": "kyverno.io/v1", "kind": "ClusterPolicy", "metadata": {"name": "small"}, "spec": {"rules": [
		{"name": "r", "match": {"any": [{"resources": {"kinds": ["Pod"]}}]}, "validate": {"pattern": {"spec": {"x": 1}}}}]}}`
}

func TestSeveralJSONDocuments(t *testing.T) {
	f, ds := policy.Parse("p.json", []byte(jsonSmall()+"\n"+jsonSmall()))
	if len(f.Policies) != 2 || len(ds) > 0 {
		t.Errorf("%d policies, %v", len(f.Policies), ds)
	}
	pos := f.Policies[1].Rules[0].Match.Any[0].Kinds[0].Pos
	if pos.Line != 4 || pos.Col != 60 || pos.Path != "spec.rules[0].match.any[0].resources.kinds[0]" {
		t.Errorf("the kind of the second policy is at %#v", pos)
	}
}

func TestEmptyFiles(t *testing.T) {
	for _, text := range []string{"", "\n", "---\n", "# comment\n", "\ufeff", "---\n---\n", "null\n", "...\n"} {
		f, ds := policy.Parse("p.yaml", []byte(text))
		if len(f.Policies)+len(f.Exceptions)+len(ds) > 0 {
			t.Errorf("%q: %v %v", text, f, ds)
		}
	}
}

// What cannot be read as a whole gets one error, at its place.
func TestUnreadable(t *testing.T) {
	deepJSON := strings.Repeat(`{"a":`, 1200) + "1" + strings.Repeat("}", 1200)
	cases := []struct {
		name, text string
		code       diag.Code
		line, col  int
	}{
		{"large", strings.Repeat("# 16 characters\n", 10<<16) + "a", diag.Unreadable, 0, 0},
		{"latin1", "a: b\n# caf\xe9\n", diag.Unreadable, 2, 6},
		{"utf16", "\xff\xfea\x00", diag.Unreadable, 1, 1},
		{"nul", "a: b\nc: \x00\n", diag.Syntax, 1, 1},
		{"deep flow", strings.Repeat("[", 2000) + strings.Repeat("]", 2000), diag.Syntax, 1, 1002},
		{"deeper flow", strings.Repeat("[", 20000), diag.Syntax, 1, 1},
		{"deep json", deepJSON, diag.Syntax, 1, 5006},
		{"laughs", laughs(), diag.AliasBomb, 6, 4},
		{"itself", "a: &a {b: *a}\n", diag.AliasBomb, 1, 11},
		{"action", "a: b\n---\na: {{ .Values.x }}\n", diag.Template, 3, 5},
		{"action in key", small + "  {{ .Values.x }}: b\n", diag.Template, 9, 3},
		{"block", "a: b\n---\n# {{ x }}\n{{- if .Values.x }}\na: b\n{{- end }}\n", diag.Template, 4, 1},
		{"quoted", strings.Replace(small, "name: r", `name: "{{ .Values.name }}"`, 1), diag.Template, 6, 13},
		{"helper", strings.Replace(small, "name: r", `name: '{{ include "a" . }}'`, 1), diag.Template, 6, 13},
		{"helm escape", strings.Replace(small, "x: 1", "x: '{{ \"{{\" }} request.object }} {{ .Values.x }}'", 1), diag.Template, 8, 38},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			f, ds := policy.Parse("p.yaml", []byte(c.text))
			if len(ds) != 1 || len(f.Policies) > 0 {
				t.Fatalf("%d policies, %v", len(f.Policies), ds)
			}
			d := ds[0]
			if d.Code != c.code || d.Severity != diag.Error || d.Line != c.line || d.Col != c.col {
				t.Errorf("%s %d:%d, want %s %d:%d: %s", d.Code, d.Line, d.Col, c.code, c.line, c.col, d.Message)
			}
		})
	}
}

func laughs() string {
	text := "# nine times nine\na: &a [x, x, x, x, x, x, x, x, x]\n"
	for c := 'b'; c < 'k'; c++ {
		one := "*" + string(c-1)
		text += string(c) + ": &" + string(c) + " [" + strings.Repeat(one+", ", 8) + one + "]\n"
	}
	return text
}

// A template is called by the tool that fills it in.
func TestTemplatesNameTheirTool(t *testing.T) {
	for action, want := range map[string]string{
		`{{ .Values.x }}`:                              "render it first, for instance with helm template",
		`{{- if .Values.x }}`:                          "render it first, for instance with helm template",
		`{{ include "a" . }}`:                          "render it first, for instance with helm template",
		`{{hub .ManagedClusterName hub}}`:              "Red Hat Advanced Cluster Management",
		`{{hub fromConfigMap "a" "b" "c" hub}}`:        "Red Hat Advanced Cluster Management",
		`{{hub (lookup "v1" "Secret" "a" "b").x hub}}`: "Red Hat Advanced Cluster Management",
	} {
		for _, value := range []string{"'" + action + "'", action, "|\n          " + action} {
			_, ds := policy.Parse("p.yaml", []byte(strings.Replace(small, "x: 1", "x: "+value, 1)))
			if len(ds) != 1 || ds[0].Code != diag.Template || !strings.Contains(ds[0].Message, want) {
				t.Errorf("%s: %v, want %s", value, ds, want)
			}
		}
	}
}

// Braces without quotes are those of a template, or a variable's whose quotes were forgotten.
func TestVariablesWithoutQuotes(t *testing.T) {
	_, ds := policy.Parse("p.yaml", []byte(strings.Replace(small, "x: 1", "x: {{ request.object.kind }}", 1)))
	if len(ds) != 1 || !strings.Contains(ds[0].Message, "put a variable of the policy in quotes") {
		t.Error(ds)
	}
}

// Variables, their escapes, and texts about templates are no templates.
func TestNoTemplates(t *testing.T) {
	for _, text := range []string{
		strings.Replace(small, "x: 1", `x: "{{ request.object.metadata.name }}"`, 1),
		strings.Replace(small, "x: 1", `x: "\\{{ .Values.x }}"`, 1),
		strings.NewReplacer("x: 1", `x: "{{hub}}{{hub || hub}}{{hub }}"`, "validate:", "context: [{name: hub, variable: {value: 1}}]\n      validate:").Replace(small),
		strings.NewReplacer("x: 1", `x: "{{ default || end || `+"`5`"+` }}"`,
			"validate:", "context: [{name: default, variable: {value: 1}}, {name: end, variable: {value: 2}}]\n      validate:").Replace(small),
		strings.Replace(small, "metadata: {name: small}", `metadata: {name: small, annotations: {a: "set {{ .Values.x }}"}}`, 1),
		"# {{ .Values.x }}\n" + small,
	} {
		parseGood(t, text)
	}
}

// A mistake in a document does not hide the others, wherever it is.
func TestOtherDocumentsAreRead(t *testing.T) {
	f, ds := policy.Parse("p.yaml", []byte("a: [b\n---\n"+small+"---\n\ta: b\n---\n"+strings.Replace(small, "small", "other", 1)+"---\na: {{b}}\n"))
	_ = ds
	if len(f.Policies) != 0 {
		t.Errorf("a template was read in part: %v", f.Policies)
	}
	f, ds = policy.Parse("p.yaml", []byte("a: [b\n---\n"+small+"---\n\ta: b\n---\n"+strings.Replace(small, "small", "other", 1)))
	if len(f.Policies) != 2 || len(ds) != 2 || f.Policies[1].Rules[0].Pos.Line != 19 {
		t.Errorf("%v %v", f.Policies, ds)
	}
}

func TestDefaults(t *testing.T) {
	p := parseGood(t, small)
	if p.Action != policy.Audit || p.FailurePolicy != policy.Fail || p.EmitWarning || !p.Admission || !p.Background || p.ApplyOne {
		t.Errorf("%+v", p)
	}
	if v := p.Rules[0].Validate; v.Action != "" || !v.AllowExisting {
		t.Errorf("%+v", v)
	}
	p = parseGood(t, `apiVersion: kyverno.io/v1
kind: Policy
metadata: {name: p}
spec:
  validationFailureAction: enforce
  failurePolicy: Ignore
  emitWarning: true
  background: false
  applyRules: One
  webhookConfiguration: {timeoutSeconds: 20, matchConditions: [{name: a, expression: b}]}
  rules:
    - name: r
      match: {resources: {kinds: [Pod]}}
      context: [{name: a, apiCall: {urlPath: /a}}]
      validate: {failureAction: Audit, allowExistingViolations: false, deny: {}}
`)
	if p.Namespace != "default" || p.Action != policy.Enforce || p.FailurePolicy != policy.Ignore || !p.EmitWarning || p.Background ||
		!p.ApplyOne || len(p.MatchConditions) != 1 || p.MatchConditions[0].Expression != "b" {
		t.Errorf("%+v", p)
	}
	r := p.Rules[0]
	if r.Match.Legacy == nil || r.Match.Any != nil || r.Context[0].APICall.Method != "GET" || r.Validate.Action != policy.Audit ||
		r.Validate.AllowExisting || r.Validate.Deny.Conditions != nil {
		t.Errorf("%+v", r)
	}
}

func TestNewFailurePolicyWins(t *testing.T) {
	p := parseGood(t, strings.Replace(small, "  rules:", "  webhookConfiguration: {failurePolicy: Ignore}\n  rules:", 1))
	if p.FailurePolicy != policy.Ignore {
		t.Error(p.FailurePolicy)
	}
}

// A present and empty any is false, an absent one is nothing; a list is an all.
func TestConditions(t *testing.T) {
	cases := []struct {
		text     string
		any, all int // -1 for nil
	}{
		{"preconditions: {any: [], all: []}", 0, 0},
		{"preconditions: {}", -1, -1},
		{"preconditions: {any: null}", -1, -1},
		{"preconditions: {any: [{key: a, operator: Equals, value: b}]}", 1, -1},
		{"preconditions: [{key: a, operator: Equals, value: b}]", -1, 1},
		{"preconditions: []", -1, 0},
	}
	for _, c := range cases {
		p := parseGood(t, withRule("match: {any: [{resources: {kinds: [Pod]}}]}\nvalidate: {deny: {}}\n"+c.text+"\n"))
		got := p.Rules[0].Preconditions
		if length(got.Any) != c.any || length(got.All) != c.all {
			t.Errorf("%s: any %d, all %d", c.text, length(got.Any), length(got.All))
		}
	}
	p := parseGood(t, withRule("match: {any: [{resources: {kinds: [Pod]}}]}\nvalidate: {deny: {}}\npreconditions: null\n"))
	if p.Rules[0].Preconditions != nil {
		t.Error("null preconditions are there")
	}
}

func length(l []*policy.Condition) int {
	if l == nil {
		return -1
	}
	return len(l)
}

// A condition without a key or value counts as null, in any spelling of that.
func TestConditionParts(t *testing.T) {
	p := parseGood(t, withRule(`match: {any: [{resources: {kinds: [Pod]}}]}
validate:
  deny:
    conditions:
      all:
        - {operator: notequal}
        - {key: null, operator: allin, value: [1]}
        - {key: 1.0, operator: GreaterThan, value: 0.5, message: m}
`))
	all := p.Rules[0].Validate.Deny.Conditions.All
	if all[0].Key != nil || all[0].Value != nil || all[0].Operator != "NotEquals" {
		t.Errorf("%+v", all[0])
	}
	if all[1].Key != nil || all[1].Value.Kind != policy.List || all[1].Operator != "AllIn" {
		t.Errorf("%+v", all[1])
	}
	if all[2].Key.Kind != policy.Int || all[2].Value.Kind != policy.Float || all[2].Message != "m" {
		t.Errorf("%+v", all[2])
	}
}

// Every place has a path that leads to it, and lines and columns that point at it.
func TestPositions(t *testing.T) {
	p := parseGood(t, withRule(`match:
  any:
    - resources:
        kinds:
          - Pod
          - "apps/v1/Deployment"
validate:
  message: café, {{ request.object.metadata.name }}
  pattern:
    metadata:
      =(labels):
        app.kubernetes.io/name: "?*"
`))
	r := p.Rules[0]
	got := []diag.Pos{
		p.Pos, r.Pos, r.Match.Pos, r.Match.Any[0].Pos, r.Match.Any[0].Kinds[1].Pos, r.Validate.Message.Pos,
		r.Validate.Pattern.Pos,
		r.Validate.Pattern.Get("metadata").Get("=(labels)").Fields[0].Pos,
		r.Validate.Pattern.Get("metadata").Get("=(labels)").Get("app.kubernetes.io/name").Pos,
	}
	at := func(line, col int, path string) diag.Pos {
		return diag.Pos{File: "p.yaml", Line: line, Col: col, Path: path}
	}
	want := []diag.Pos{
		at(1, 1, ""), at(6, 7, "spec.rules[0]"), at(8, 9, "spec.rules[0].match"), at(9, 13, "spec.rules[0].match.any[0]"),
		at(12, 19, "spec.rules[0].match.any[0].resources.kinds[1]"), at(14, 18, "spec.rules[0].validate.message"),
		at(16, 11, "spec.rules[0].validate.pattern"),
		at(18, 15, `spec.rules[0].validate.pattern.metadata["=(labels)"]["app.kubernetes.io/name"]`),
		at(18, 39, `spec.rules[0].validate.pattern.metadata["=(labels)"]["app.kubernetes.io/name"]`),
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

// What an alias or a merge key brings has the line of its anchor and the path of
// its use.
func TestAliases(t *testing.T) {
	p := parseGood(t, withRule(`match: {any: [{resources: {kinds: [Pod]}}]}
validate:
  anyPattern:
    - &a {spec: {x: &b [1, 2]}}
    - *a
    - <<: [*a, {spec: {x: 2}, w: 3}]
      z: *b
`))
	second := p.Rules[0].Validate.AnyPattern.Items[1].Get("spec").Get("x").Items[1]
	if second.Int != 2 || second.Pos.Line != 10 || second.Pos.Path != "spec.rules[0].validate.anyPattern[1].spec.x[1]" {
		t.Errorf("%+v", second)
	}
	third := p.Rules[0].Validate.AnyPattern.Items[2]
	x := third.Get("spec").Get("x").Items[0]
	if x.Int != 1 || x.Pos.Path != "spec.rules[0].validate.anyPattern[2].spec.x[0]" || third.Get("w").Int != 3 || third.Get("z").Items[1].Int != 2 {
		t.Errorf("%+v", third.Value())
	}
}

func FuzzParse(f *testing.F) {
	for _, c := range fixtures.All() {
		f.Add(c.Policy)
	}
	files, _ := filepath.Glob("testdata/bad/*")
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Add([]byte(jsonSmall()))
	f.Add([]byte(laughs()))
	f.Fuzz(func(t *testing.T, data []byte) {
		file, ds := policy.Parse("p.yaml", data)
		for _, d := range ds {
			if d.File == "" || d.Message == "" || d.Line <= 0 && d.Code != diag.Unreadable || d.Line > 1+bytes.Count(data, []byte("\n"))+bytes.Count(data, []byte("\r")) {
				t.Errorf("%#v", d)
			}
		}
		for _, p := range file.Policies {
			for _, r := range policy.Expand(p) {
				if r.Source == nil || r.Type() == "" && !r.Invalid {
					t.Errorf("rule %q is incomplete", r.Name)
				}
			}
			policy.Marshal(p.Source)
			p.RulesFor("Deployment")
		}
	})
}

func BenchmarkParse(b *testing.B) {
	var data [][]byte
	size := int64(0)
	for _, c := range fixtures.All() {
		if strings.HasPrefix(c.Name, "bad-") {
			continue
		}
		data = append(data, c.Policy)
		size += int64(len(c.Policy))
	}
	b.SetBytes(size)
	b.ReportAllocs()
	count := 0
	for b.Loop() {
		for _, d := range data {
			f, _ := policy.Parse("p.yaml", d)
			count += len(f.Policies)
		}
	}
	b.ReportMetric(float64(count)/b.Elapsed().Seconds(), "policies/s")
}
