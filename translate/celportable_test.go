package translate_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/diag"
)

// The texts of CEL expressions come out byte for byte.
func TestCELComesOutAsWritten(t *testing.T) {
	t.Parallel()
	cel := oneCELRule("", `celPreconditions: [{name: c, expression: "!( object.metadata.name == \"x\" )"}]`, `
variables: [{name: v, expression: "\n // none\n object.?metadata.?labels[?\"a\"] .orValue( '' ) "}]
expressions: [{expression: "(variables.v) != 'a' // not a", messageExpression: "'not '+variables.v"}]`)
	validating := strings.NewReplacer(
		"!(object.metadata.name.startsWith('system-'))", "!( object.metadata.name == \\\"x\\\" )",
		"namespaceObject.metadata.?labels.checked.orValue('') == 'yes'", `"true || \t false // still"`,
		"object.metadata.?labels.team.orValue('')", `"\n // none\n object.?metadata.?labels[?'a'] .orValue( '' ) "`,
		"expression: variables.team != ''", `expression: "( variables.team ) != ''"`,
	).Replace(validatingPolicy)
	for _, text := range []string{cel, validating} {
		p := translateText(t, text, setting{})
		for _, d := range p.result.Diagnostics {
			t.Error(d)
		}
		spec := p.result.Objects[0].Policy.Spec
		var got []string
		for _, c := range spec.MatchConditions {
			got = append(got, c.Expression)
		}
		for _, v := range spec.Variables {
			got = append(got, v.Expression)
		}
		for _, v := range spec.Validations {
			got = append(got, v.Expression, v.MessageExpression)
		}
		all, found := strings.NewReplacer(`\"`, `"`, `\n`, "\n", `\t`, "\t").Replace(text), 0
		for _, g := range got {
			if !strings.Contains(all, g) {
				t.Errorf("%q is not in the source", g)
			} else if g != "" {
				found++
			}
		}
		if found < 4 {
			t.Errorf("only %q", got)
		}
	}
}

// What does not come out as written is told of, with the reason.
func TestRewrittenCEL(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, text, want, because string }{
		{"as written", oneCELRule("", "", `expressions: [{expression: "has(object.data)"}]`), "has(object.data)", ""},
		{"missing", oneCELRule("", "", `expressions: [{expression: "object.data.a == 'a'"}]`), "has(object.data) && has(object.data.a) && object.data.a == 'a'", "asks first"},
		{"no optional value", oneCELRule("", "", `expressions: [{expression: "has(object.data) && object.data.orValue({}).size() > 0"}]`), "has(object.data) && object.data.size() > 0", "not optional"},
		{"no boolean", oneCELRule("", "", `expressions: [{expression: "object.metadata.namespace.orValue(true)"}]`), "object.metadata.namespace == true", "not optional"},
		{"failure policy", oneCELRule("failurePolicy: Ignore", "", `expressions: [{expression: "has(object.data)"}]`), "has(object.data)", "Fail and not Ignore"},
		{"request", oneCELRule("", "", `expressions: [{expression: "request.dryRun || has(object.data)"}]`), "has(object.data)", "makes up the request"},
		{"condition", oneCELRule("", `celPreconditions: [{name: c, expression: "object.data.a == 'a'"}]`, `expressions: [{expression: "has(object.data)"}]`), "has(object.data) && has(object.data.a)", "lets through what it cannot tell"},
		{"variable", oneCELRule("", `celPreconditions: [{name: c, expression: "variables.v"}]`, `{variables: [{name: v, expression: "has(object.data)"}], expressions: [{expression: "has(object.data)"}]}`), "has(object.data)", "no variables"},
		{"of the policy", oneCELRule("webhookConfiguration: {matchConditions: [{name: c, expression: object.metadata.name.orValue('') == 'a'}]}", "", `expressions: [{expression: "has(object.data)"}]`), "has(object.data)", "not optional"},
		{"namespace", validatingPolicy, "namespaceObject.metadata.?labels.checked.orValue('') == 'yes' ? variables.team != '' : true", "do not see the namespace"},
		{"ValidatingPolicy", strings.ReplaceAll(validatingPolicy, "variables.team != ''", "object.metadata.labels.orValue({}).size() > 0"), "namespaceObject.metadata.?labels.checked.orValue('') == 'yes'\n  ? object.metadata.labels.size() > 0\n  : true", "not optional"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := translateText(t, tt.text, setting{})
			if got := p.targets(); got != "native" {
				t.Fatalf("%s\n%v", got, p.result.Diagnostics)
			}
			if got := p.result.Objects[0].Policy.Spec.Validations[0].Expression; got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
			told := slices.ContainsFunc(p.result.Diagnostics, func(d diag.Diagnostic) bool {
				return d.Code == diag.Rewritten && d.Severity == diag.Note && strings.Contains(d.Message, tt.because)
			})
			if told != (tt.because != "") {
				t.Errorf("want %q in\n%v", tt.because, p.result.Diagnostics)
			}
		})
	}
}

// orValue of what may be optional or not has no form for all releases, nor has what
// only newer releases take as Kyverno does.
func TestReleaseDependentCEL(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		expression string
		release    cel.Release
		want       string
	}{
		{"(has(object.kind) ? object.?kind : object.apiVersion).orValue('') == ''", 30, "webhook KV218"},
		{"(has(object.kind) ? object.?kind : object.apiVersion).orValue('') == ''", 37, "webhook KV218"},
		{"[object.?kind].all(x, x.orValue('') == '')", 34, "webhook KV218"},
		{"object.metadata.name.indexOf('-') > 0", 31, "webhook KV218"},
		{"object.metadata.name.indexOf('-') > 0", 34, "native"},
	} {
		text := oneCELRule("", "", "expressions: [{expression: \""+tt.expression+"\"}]")
		validating := strings.ReplaceAll(validatingPolicy, "expression: variables.team != ''", "expression: \""+tt.expression+"\"")
		for _, text := range []string{text, validating} {
			p := translateText(t, text, setting{release: tt.release})
			if got := p.targets(); got != tt.want {
				t.Errorf("%s for %s: %s, want %s\n%v", tt.expression, tt.release, got, tt.want, p.result.Diagnostics)
			}
		}
	}
}

// An orValue of a value that is not optional is that value, as in Kyverno.
func TestPlainOrValue(t *testing.T) {
	t.Parallel()
	text := strings.Replace(validatingPolicy, "  - expression: variables.team != ''", "  - expression: object.spec.hostPID.orValue(true)", 1)
	p := translateText(t, text, setting{namespaces: map[string]map[string]string{"app": {"checked": "yes"}}})
	p.try(t, []trial{
		{name: "true", object: pod("", `"hostPID": true`), want: "allow"},
		{name: "false", object: pod("", `"hostPID": false`), want: "deny refused: a team, please"},
		{name: "missing", object: pod("", ""), want: "error refused"},
	})
}
