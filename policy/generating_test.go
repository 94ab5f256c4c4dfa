package policy_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/policy"
)

const generating = `apiVersion: policies.kyverno.io/v1
kind: NamespacedGeneratingPolicy
metadata: {name: p, namespace: shop}
spec:
  useServerSideApply: true
  webhookConfiguration: {timeoutSeconds: 5}
  evaluation:
    admission: {enabled: true}
    generateExisting: {enabled: true}
    synchronize: {enabled: true}
    orphanDownstreamOnPolicyDelete: {enabled: true}
    skipBackgroundRequests: false
  matchConstraints:
    resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE, DELETE], resources: [pods]}]
  matchConditions: [{name: a, expression: b}]
  variables: [{name: c, expression: d}]
  generate:
  - expression: e
  - template:
      interpolate: cel
      value: |
        kind: ConfigMap
        metadata: {name: "((object.metadata.name))-copy"}
        ---
        kind: Secret
  auditAnnotations: [{key: g, valueExpression: h}]
`

func TestGeneratingPolicy(t *testing.T) {
	f, ds := policy.Parse("p.yaml", []byte(generating))
	if len(ds) > 0 || len(f.Policies) != 1 {
		t.Fatal(ds)
	}
	p := f.Policies[0]
	g := p.Generating
	want := &policy.Generating{
		MatchConstraints: &policy.MatchConstraints{Rules: []policy.ResourceRule{{
			Groups: []string{""}, Versions: []string{"v1"}, Resources: []string{"pods"}, Operations: []string{"CREATE", "DELETE"}, Scope: "*",
		}}},
		MatchConditions: []policy.CEL{{Name: "a", Expression: "b"}}, Variables: []policy.CEL{{Name: "c", Expression: "d"}},
		Entries:          []policy.GenerateEntry{{Expression: "e"}, {Template: g.Entries[1].Template, Interpolate: true}},
		AuditAnnotations: []policy.CEL{{Name: "g", Expression: "h"}},
		Synchronize:      true, Orphan: true, Existing: true,
	}
	if d := cmp.Diff(want, g, cmpopts.IgnoreTypes(diag.Pos{})); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
	if len(g.Entries[1].Template) != 2 || g.Entries[1].Template[1].Get("kind").Str != "Secret" {
		t.Errorf("%+v", g.Entries[1])
	}
	if got := g.Entries[1].Expressions(); len(got) != 1 || got[0] != "object.metadata.name" {
		t.Errorf("the template evaluates %q", got)
	}
	// It never denies, and so must not where the webhook cannot answer.
	if p.FailurePolicy != policy.Ignore || !p.ServerSideApply || !p.Namespaced() || !p.InCEL() || !p.StartsWork() || p.Invalid ||
		!g.Lists("DELETE") || g.Lists("UPDATE") || p.MatchConstraints() != g.MatchConstraints {
		t.Errorf("%+v", p)
	}
	if at := g.Entries[0].Pos; at.Line != 18 || at.Path != "spec.generate[0].expression" {
		t.Errorf("the first entry is at %+v", at)
	}
}

// What is not said has its default, in all versions.
func TestGeneratingDefaults(t *testing.T) {
	for _, version := range []string{"v1", "v1beta1", "v1alpha1"} {
		p := parseGood(t, `apiVersion: policies.kyverno.io/`+version+`
kind: GeneratingPolicy
metadata: {name: p}
spec:
  matchConstraints: {resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [pods]}]}
  generate: [{template: {value: "kind: ((x"}}]
`)
		g := p.Generating
		if !p.Admission || p.ServerSideApply || p.Namespaced() || !g.SkipBackground || g.Existing || g.Synchronize || g.Orphan || g.Entries[0].Interpolate {
			t.Errorf("%s: %+v %+v", version, p, g)
		}
	}
}

// What is wrong is told at its line.
func TestGeneratingErrors(t *testing.T) {
	for _, c := range []struct {
		from, to string
		code     diag.Code
		line     int
	}{
		{"useServerSideApply: true", "failurePolicy: Fail", diag.UnknownKey, 5},
		{"timeoutSeconds: 5", "timeoutSeconds: 50", diag.OutOfRange, 6},
		{"generateExisting: {", "generateExistng: {", diag.UnknownKey, 9},
		{"synchronize: {enabled: true}", "synchronize: {enabled: 1}", diag.WrongType, 10},
		{"[{apiGroups: [\"\"], apiVersions: [v1], operations: [CREATE, DELETE], resources: [pods]}]", "[]", diag.Missing, 14},
		{"matchConditions: [{name: a, expression: b}]", "matchConditions: [{name: a}]", diag.Missing, 15},
		{"variables: [{name: c, expression: d}]", "variables: {c: d}", diag.WrongType, 16},
		{"- expression: e", "- {expression: e, template: {value: 'a: b'}}", diag.Conflict, 18},
		{"- expression: e", "- {}", diag.Missing, 18},
		{"interpolate: cel", "interpolate: all", diag.OutOfRange, 20},
		{"kind: Secret", "- Secret", diag.WrongType, 21},
		{"kind: Secret", "kind: {", diag.Syntax, 21},
		{"-copy", "((", diag.Syntax, 21},
		{"kind: Secret", "'((a))': Secret", diag.Syntax, 21},
	} {
		f, ds := policy.Parse("p.yaml", []byte(strings.Replace(generating, c.from, c.to, 1)))
		if len(ds) != 1 || ds[0].Code != c.code || ds[0].Line != c.line || ds[0].Severity != diag.Error || !f.Policies[0].Invalid {
			t.Errorf("%s: %v", c.to, ds)
		}
	}
	if f, ds := policy.Parse("p.yaml", []byte(strings.Replace(generating, "io/v1\n", "io/v1alpha1\n", 1))); !ds.HasErrors() || len(f.Policies) > 0 {
		t.Errorf("a namespaced kind of v1alpha1: %v", ds)
	}
}

// A text of a template is taken apart where its expressions end: not within quotes, nor at
// parentheses of their own.
func TestSplitTemplate(t *testing.T) {
	text := func(s string) policy.TemplatePart { return policy.TemplatePart{Text: s} }
	expression := func(s string) policy.TemplatePart { return policy.TemplatePart{Expression: s} }
	for in, want := range map[string][]policy.TemplatePart{
		"":                      nil,
		"a (b) c":               {text("a (b) c")},
		"(( a ))":               {expression("a")},
		" ((a))":                {text(" "), expression("a")},
		"((a))-((b))":           {expression("a"), text("-"), expression("b")},
		`\((a)) ((b))`:          {text("((a)) "), expression("b")},
		"((f(g(a)) + '))'))":    {expression("f(g(a)) + '))'")},
		`(("it\"s))" + "x"))))`: {expression(`"it\"s))" + "x"`), text("))")},
	} {
		if got, ok := policy.SplitTemplate(in); !ok || cmp.Diff(want, got) != "" {
			t.Errorf("%s: %v %+v", in, ok, got)
		}
	}
	for _, in := range []string{"((a)", "((", "(())", "(( ))", "((a')) b", "((f(a))", "((a) b))"} {
		if got, ok := policy.SplitTemplate(in); ok {
			t.Errorf("%s: %+v", in, got)
		}
	}
}
