package policy

import (
	"slices"
	"testing"

	"github.com/kvap/kvap/diag"
)

const carriedPolicy = `
apiVersion: policy.open-cluster-management.io/v1
kind: Policy
metadata: {name: teams, namespace: policies}
spec:
  policy-templates:
    - objectDefinition:
        apiVersion: policy.open-cluster-management.io/v1
        kind: ConfigurationPolicy
        metadata: {name: teams}
        spec:
          object-templates:
            - complianceType: musthave
              objectDefinition:
                apiVersion: kyverno.io/v1
                kind: ClusterPolicy
                metadata: {name: team}
                spec:
                  rules:
                    - name: team
                      match: {any: [{resources: {kinds: [Pod]}}]}
                      validate: {message: m, pattern: {metadata: {labels: {team: "?*"}}}}
            - complianceType: mustnothave
              objectDefinition: {apiVersion: kyverno.io/v1, kind: ClusterPolicy, metadata: {name: gone}, spec: {rules: []}}
            - complianceType: musthave
              objectDefinition: {apiVersion: v1, kind: ConfigMap, metadata: {name: settings}}
    - objectDefinition:
        apiVersion: kyverno.io/v1
        kind: ClusterPolicy
        metadata: {name: direct}
        spec:
          rules:
            - name: team
              match: {any: [{resources: {kinds: [Pod]}}]}
              validate: {message: m, pattern: {metadata: {labels: {team: "?*"}}}}
`

// The policies that a Policy of Open Cluster Management carries are read, at their places.
func TestCarriedPolicies(t *testing.T) {
	f, found := Parse("acm.yaml", []byte(carriedPolicy))
	if found.HasErrors() || len(f.Policies) != 2 || f.Policies[0].Name != "team" || f.Policies[1].Name != "direct" {
		t.Fatalf("%v, %v", f.Policies, found)
	}
	if at := f.Policies[0].Carrier; at != f.Policies[1].Carrier || at.Pos.Line != 2 {
		t.Errorf("they are carried by %v", at.Pos)
	}
	rule := f.Policies[0].Rules[0]
	if rule.Pos.Line != 20 || rule.Pos.Path != "spec.policy-templates[0].objectDefinition.spec.object-templates[0].objectDefinition.spec.rules[0]" {
		t.Errorf("the rule is at %v %s", rule.Pos, rule.Pos.Path)
	}
	var codes []diag.Code
	for _, d := range found {
		codes = append(codes, d.Code)
	}
	if want := []diag.Code{diag.OtherKind, diag.OtherKind, diag.OtherKind}; !slices.Equal(codes, want) {
		t.Errorf("got %v", found)
	}
	f, found = Parse("acm.yaml", []byte("apiVersion: policy.open-cluster-management.io/v1\nkind: ConfigurationPolicy\nmetadata: {name: raw}\nspec:\n  object-templates-raw: |\n    {{ range $x }}\n    apiVersion: kyverno.io/v1\n"))
	if len(f.Unread) != 1 || f.Unread[0].Code != diag.UnreadKind || len(found) != 2 {
		t.Errorf("%v, %v", f.Unread, found)
	}
	if f, found = Parse("acm.yaml", []byte("apiVersion: policy.open-cluster-management.io/v1\nkind: PlacementBinding\nmetadata: {name: raw}\n")); len(found) != 1 || found[0].Code != diag.OtherKind || len(f.Unread) > 0 {
		t.Errorf("%v, %v", f.Unread, found)
	}
}

// Braces that a template only escapes are read as what it writes; a template that does more is one.
func TestEscapedBraces(t *testing.T) {
	for name, c := range map[string]struct{ in, want string }{
		"in backquotes":          {"m: \"no {{`{{ request.name }}`}}\"\n", "m: \"no {{ request.name }}\"\n"},
		"with spaces":            {"m: \"{{ `{{ a }} and {{ b }}` }}.\"\n", "m: \"{{ a }} and {{ b }}.\"\n"},
		"each brace":             {`m: 'no {{ "{{" }} a {{ "}}" }}'`, `m: 'no {{ a }}'`},
		"beside a comment":       {"{{/* kept */}}m: \"{{`{{ a }}`}}\"\n", "m: \"{{ a }}\"\n"},
		"beside a value":         {"m: \"{{`{{ a }}`}} {{ .Values.b }}\"\n", ""},
		"beside a bare variable": {"m: \"{{`{{ a }}`}} {{ b }}\"\n", ""},
		"beside what trims":      {"m: \"{{`{{ a }}`}} {{- `b` }}\"\n", ""},
		"in a comment of YAML":   {"# {{ .Values.b }}\nm: \"{{`{{ a }}`}}\"\n", "# {{ .Values.b }}\nm: \"{{ a }}\"\n"},
		"JMESPath's literals":    {"m: \"{{ `[1]` }} {{ a }}\"\n", ""},
		"nothing but literals":   {"m: \"{{ `[1]` }}\"\n", ""},
		"what a cluster has":     {"{\"m\": \"{{`{{ a }}`}}\"}", ""},
		"over several lines":     {"m: {{ `\n{{ a }}\n` }}\n", ""},
	} {
		want := c.want
		if want == "" {
			want = c.in
		}
		if got := string(unescaped([]byte(c.in))); got != want {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
}
