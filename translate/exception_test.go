package translate_test

import (
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"

	"github.com/kvap/kvap/policy"
)

const exceptedPolicy = `
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata:
  name: host
spec:
  background: false
  validationFailureAction: Enforce
  rules:
    - name: network
      match: {any: [{resources: {kinds: [Pod]}}]}
      validate:
        message: no host network
        pattern: {spec: {=(hostNetwork): false}}
    - name: pid
      match: {any: [{resources: {kinds: [Pod]}}]}
      preconditions: {all: [{key: "{{ request.object.metadata.labels.kind }}", operator: Equals, value: worker}]}
      validate:
        message: no host PID
        pattern: {spec: {=(hostPID): false}}
`

func exception(rules, rest string) string {
	return exceptedPolicy + `
---
apiVersion: kyverno.io/v2
kind: PolicyException
metadata:
  name: e
  namespace: default
spec:
  exceptions: [{policyName: host, ruleNames: ` + rules + `}]
` + indent(2, rest)
}

func TestExceptions(t *testing.T) {
	t.Parallel()
	host := pod("", `"hostNetwork": true`)
	named := strings.Replace(host, `"web"`, `"tool-1"`, 1)
	deployment := `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"tool-1","namespace":"app"},"spec":{"template":{"spec":{"hostNetwork":true}}}}`
	const tools = `match: {any: [{resources: {kinds: [Pod, Deployment], names: ["tool-*"]}}]}`
	for _, tt := range []struct {
		name, rules, rest string
		trials            []trial
	}{
		{"by name", "[network]", tools, []trial{
			{name: "covered", object: named, want: "nomatch"},
			{name: "another", object: host, want: "deny refused"},
			{name: "controllers go by another name", object: deployment, want: "deny refused"},
		}},
		{"wildcard", `["*network"]`, tools, []trial{
			{name: "covered", object: named, want: "nomatch"},
			{name: "controller", object: deployment, want: "nomatch"},
		}},
		{"another rule", `[pid]`, tools, []trial{{name: "not covered", object: named, want: "deny refused"}}},
		{"operations do not count", "[network]", `match: {any: [{resources: {kinds: [Pod], operations: [DELETE]}}]}`, []trial{{name: "covered", object: host, want: "nomatch"}}},
		{"all", "[network]", `match: {all: [{resources: {kinds: [Pod]}}, {resources: {names: [web]}}]}`, []trial{
			{name: "covered", object: host, want: "nomatch"},
			{name: "another", object: named, want: "deny refused"},
		}},
		{"namespace labels", "[network]", `match: {any: [{resources: {kinds: [Pod], namespaceSelector: {matchLabels: {env: dev}}}}]}`, []trial{
			{name: "covered", object: host, want: "allow"},
			{name: "another", object: strings.Replace(host, `"app"`, `"other"`, 1), want: "deny refused"},
		}},
		{"user", "[network]", "background: false\nmatch: {any: [{resources: {kinds: [Pod]}, subjects: [{kind: Group, name: ops}]}]}", []trial{
			{name: "covered", object: host, want: "nomatch", edit: func(r *admissionv1.AdmissionRequest) { r.UserInfo.Groups = []string{"ops"} }},
			{name: "another", object: host, want: "deny refused"},
		}},
		{"conditions", "[network]", `
match: {any: [{resources: {kinds: [Pod]}}]}
conditions: {any: [{key: "{{ request.object.metadata.labels.tool }}", operator: Equals, value: "yes"}]}
`, []trial{
			{name: "covered", object: pod(`,"labels":{"tool":"yes"}`, `"hostNetwork": true`), want: "nomatch"},
			{name: "false", object: pod(`,"labels":{"tool":"no"}`, `"hostNetwork": true`), want: "deny refused"},
			{name: "an error does not apply", object: host, want: "deny refused"},
		}},
		{"pod security of another kind of rule", "[network]", "match: {any: [{resources: {kinds: [Pod]}}]}\npodSecurity: [{controlName: Host Namespaces}]", []trial{{name: "covered", object: host, want: "nomatch"}}},
		{"not from preconditions that err", "[pid]", `match: {any: [{resources: {kinds: [Pod]}}]}`, []trial{
			{name: "covered", object: pod(`,"labels":{"kind":"worker"}`, `"hostPID": true`), want: "allow"},
			{name: "not met", object: pod(`,"labels":{"kind":"other"}`, `"hostPID": true`), want: "allow"},
			{name: "an error", object: pod("", `"hostPID": true`), want: "deny refused: no host PID"},
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			text := exception(tt.rules, tt.rest)
			if !strings.Contains(tt.rules, "pid") { // whose preconditions err without labels
				before, rest, _ := strings.Cut(text, "    - name: pid")
				_, after, _ := strings.Cut(rest, "---")
				text = before + "---" + after
			}
			p := translateText(t, text, setting{namespaces: map[string]map[string]string{"app": {"env": "dev"}}})
			p.try(t, tt.trials)
		})
	}
}

// An exception with an error excepts nothing.
func TestInvalidException(t *testing.T) {
	t.Parallel()
	file, found := policy.Parse("e.yaml", []byte(exception("[network]", `match: {any: [{resources: {kinds: [Pod]}}]}`)))
	if found.HasErrors() || len(file.Exceptions) != 1 {
		t.Fatal(found)
	}
	text, _, _ := strings.Cut(exceptedPolicy, "    - name: pid")
	for invalid, want := range map[bool]string{false: "nomatch", true: "deny refused"} {
		file.Exceptions[0].Invalid = invalid
		p := translateText(t, text, setting{exceptions: file.Exceptions})
		p.try(t, []trial{{name: "fails", object: pod("", `"hostNetwork": true`), want: want}})
	}
}

func TestExceptionsOfCELRules(t *testing.T) {
	t.Parallel()
	text := oneCELRule("", "", small) + `
---
apiVersion: kyverno.io/v2
kind: PolicyException
metadata:
  name: e
  namespace: default
spec:
  exceptions: [{policyName: p, ruleNames: [r]}]
  match: {any: [{resources: {kinds: [ConfigMap], names: [big]}}]}
`
	p := translateText(t, text, setting{})
	p.try(t, []trial{
		{name: "covered", object: strings.Replace(configMap("", `"size":"11"`), `"c"`, `"big"`, 1), want: "nomatch"},
		{name: "another", object: configMap("", `"size":"11"`), want: "deny refused"},
	})
}
