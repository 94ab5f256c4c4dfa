package translate_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/vap"
	"github.com/kvap/kvap/vap/apiserver"
)

// overriding is a policy that denies every object of a kind, with overrides.
func overriding(kind, base, overrides string) string {
	return fmt.Sprintf(`
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata:
  name: never
  annotations:
    pod-policies.kyverno.io/autogen-controllers: none
spec:
  background: false
  rules:
    - name: never
      match: {any: [{resources: {kinds: [%s], operations: [CREATE]}}]}
      validate:
        failureAction: %s
        failureActionOverrides: %s
        deny: {}
`, kind, base, overrides)
}

func TestOverrides(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, kind, overrides, want string }{
		{"none", "Pod", `[]`, "Audit{}"},
		{"always", "Pod", `[{action: Enforce}]`, "Deny{}"},
		{"names", "Pod", `[{action: Enforce, namespaces: [b, a]}]`, "Deny enforce{name in a b} Audit audit{name notin a b}"},
		{"one name", "Pod", `[{action: Enforce, namespaces: [a]}]`, "Deny enforce{name=a} Audit audit{name notin a}"},
		{"as the base", "Pod", `[{action: Audit, namespaces: [a]}]`, "Audit{}"},
		{"the first counts", "Pod", `[{action: Audit, namespaces: [a]}, {action: Enforce, namespaces: [a, b]}]`, "Audit audit{name notin b} Deny enforce{name=b}"},
		{"a label", "Pod", `[{action: Enforce, namespaceSelector: {matchLabels: {env: prod}}}]`, "Deny enforce{env=prod} Audit audit{env notin prod}"},
		{"two labels", "Pod", `[{action: Enforce, namespaceSelector: {matchLabels: {env: prod, tier: a}}}]`,
			"Deny enforce{env=prod,tier=a} Audit audit{env notin prod} Audit audit-2{env=prod,tier notin a}"},
		{"not a label", "Pod", `[{action: Enforce, namespaceSelector: {matchExpressions: [{key: dev, operator: DoesNotExist}]}}]`, "Deny enforce{dev notexist} Audit audit{dev exists}"},
		{"any value but some", "Pod", `[{action: Enforce, namespaceSelector: {matchExpressions: [{key: e, operator: Exists}, {key: e, operator: NotIn, values: [x]}]}}]`,
			"Deny enforce{e exists,e notin x} Audit audit{e=x} Audit audit-2{e notexist}"},
		{"both", "Pod", `[{action: Enforce, namespaces: [a, b], namespaceSelector: {matchLabels: {env: prod}}}]`,
			"Deny enforce{env=prod,name in a b} Audit audit{env notin prod} Audit audit-2{env=prod,name notin a b}"},
		{"any namespace", "Pod", `[{action: Enforce, namespaces: ['*']}]`, "Deny{}"},
		{"no namespace", "Pod", `[{action: Enforce, namespaces: []}]`, "Audit{}"},
		{"objects without a namespace", "ClusterRole", `[{action: Enforce, namespaces: [a]}]`, "Audit{}"},
		{"negative selector without a namespace", "ClusterRole", `[{action: Enforce, namespaceSelector: {matchExpressions: [{key: dev, operator: DoesNotExist}]}}]`, "Deny{}"},
		{"any name is no name", "ClusterRole", `[{action: Enforce, namespaces: ['*']}]`, "Deny{}"},
		{"some name is not", "ClusterRole", `[{action: Enforce, namespaces: ['?*']}]`, "Audit{}"},
		{"objects with and without", "Pod, ClusterRole", `[{action: Enforce, namespaces: [a]}]`,
			"Deny enforce{name=a} Namespaced Audit audit{name notin a} Namespaced Audit audit-cluster{} Cluster"},
		{"other without", "Pod, ClusterRole", `[{action: Enforce, namespaces: ['?*']}]`, "Deny enforce{} Namespaced Audit audit-cluster{} Cluster"},
		{"all alike", "Pod, ClusterRole", `[{action: Enforce}]`, "Deny{}"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := translateText(t, overriding(tt.kind, "Audit", tt.overrides), setting{})
			if got := bindingsText(p.result.Objects[0].Draft.Bindings); got != tt.want {
				t.Errorf("got %s\nwant %s", got, tt.want)
			}
		})
	}
}

func bindingsText(bs []vap.Binding) string {
	var out []string
	for _, b := range bs {
		var reqs []string
		for _, l := range b.NamespaceSelector.Labels {
			reqs = append(reqs, l.Key+"="+l.Value)
		}
		for _, e := range b.NamespaceSelector.Expressions {
			reqs = append(reqs, strings.Join(append([]string{e.Key, strings.ToLower(strings.Replace(e.Operator, "DoesNot", "Not", 1))}, e.Values...), " "))
		}
		text := strings.Join(b.Actions, "+")
		if b.Suffix != "" {
			text += " " + b.Suffix
		}
		text += "{" + strings.Join(reqs, ",") + "}"
		for _, r := range b.Rules {
			text += " " + r.Scope
		}
		out = append(out, text)
	}
	return strings.ReplaceAll(strings.Join(out, " "), "kubernetes.io/metadata.name", "name")
}

func TestOverrideDiagnostics(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ overrides, want string }{
		{`[{action: Enforce, namespaces: [a], namespaceSelector: {matchLabels: {a: b}}}]`, "native KV307"},
		{`[{action: Enforce, namespaces: [prod-*]}]`, "native"},
		{`[{action: Enforce, namespaces: [prod-*]}, {action: Audit, namespaceSelector: {matchLabels: {a: b}}}]`, "webhook KV201"},
		{`[{action: Enforce, namespaces: [a]}]`, "native"},
	} {
		p := translateText(t, overriding("Pod", "Audit", tt.overrides), setting{})
		if got := p.targets(); got != tt.want {
			t.Errorf("%s: got %s, want %s", tt.overrides, got, tt.want)
		}
	}
}

// With wildcards for namespaces, each action has an object of its own.
func TestWildOverrides(t *testing.T) {
	t.Parallel()
	const overrides = `[{action: Audit, namespaces: [prod-test, "*-dev"]}, {action: Enforce, namespaces: ["prod-*", core]}]`
	p := translateText(t, overriding("ConfigMap, ClusterRole, Namespace", "Audit", overrides), setting{})
	if len(p.result.Rules[0].Objects) != len(p.result.Objects) {
		t.Errorf("the rule has %d objects of %d", len(p.result.Rules[0].Objects), len(p.result.Objects))
	}
	in := func(namespace string) string {
		return strings.Replace(configMap("", ""), `"app"`, `"`+namespace+`"`, 1)
	}
	p.try(t, []trial{
		{name: "enforced", object: in("prod-a"), want: "deny refused"},
		{name: "enforced by name", object: in("core"), want: "deny refused"},
		{name: "the first counts", object: in("prod-test"), want: "deny"},
		{name: "the first wildcard counts", object: in("prod-dev"), want: "deny"},
		{name: "neither", object: in("app"), want: "deny"},
		{name: "without a namespace", object: `{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRole","metadata":{"name":"prod-a"}}`, want: "deny"},
		{name: "a Namespace is in none", object: `{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"prod-a"}}`, want: "deny"},
	})
	enforced := translateText(t, overriding("ConfigMap", "Enforce", `[{action: Audit, namespaces: [dev-*]}]`), setting{})
	enforced.try(t, []trial{
		{name: "base", object: in("app"), want: "deny refused"},
		{name: "override", object: in("dev-a"), want: "deny"},
	})
}

// Overrides of the policy count after those of the rule, and only for rules that
// name no action.
func TestOverridesOfThePolicy(t *testing.T) {
	t.Parallel()
	const text = `
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata:
  name: never
spec:
  background: false
  validationFailureAction: Audit
  validationFailureActionOverrides: [{action: Enforce, namespaces: [a]}]
  rules:
    - name: plain
      match: {any: [{resources: {kinds: [ConfigMap]}}]}
      validate: {deny: {}}
    - name: action
      match: {any: [{resources: {kinds: [ConfigMap]}}]}
      validate: {failureAction: Audit, deny: {}}
    - name: more
      match: {any: [{resources: {kinds: [ConfigMap]}}]}
      validate: {failureActionOverrides: [{action: Audit, namespaces: [a]}, {action: Enforce, namespaces: [b]}], deny: {}}
`
	p := translateText(t, text, setting{})
	want := map[string]string{
		"plain":  "Deny enforce{name=a} Audit audit{name notin a}",
		"action": "Audit{}",
		"more":   "Audit audit{name notin b} Deny enforce{name=b}",
	}
	for _, o := range p.result.Objects {
		d := o.Draft
		rule := d.Members[0].Rule
		if got := bindingsText(d.Bindings); got != want[rule] || len(d.Members) != 1 {
			t.Errorf("%s: got %s, want %s", rule, got, want[rule])
		}
	}
}

// Every object falls under one binding, with the action that the first override
// that hits gives.
func TestOverridesAreDisjoint(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	for range 60 {
		overrides := randomOverrides(r)
		p := translateText(t, overriding("ConfigMap, ClusterRole, Namespace", "Audit", overrides), setting{})
		rule := p.policy.Rules[0]
		for range 15 {
			name := []string{"a", "b", "c"}[r.IntN(3)]
			labels := map[string]string{}
			for _, k := range []string{"env", "tier"} {
				if v := []string{"x", "z", ""}[r.IntN(3)]; v != "" {
					labels[k] = v
				}
			}
			object, in, with := `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"o","namespace":"`+name+`"}}`, name, labels
			switch r.IntN(3) {
			case 0:
				object, in, with = `{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRole","metadata":{"name":"o"}}`, "", nil
			case 1:
				object, in, with = `{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"`+name+`","labels":{"env":"x","kubernetes.io/metadata.name":"`+name+`"}}}`, "", nil
			}
			verdicts, err := p.judge.Review(t.Context(), objectRequest(t, "CREATE", object, ""), apiserver.Labelled(labels))
			if err != nil {
				t.Fatal(err)
			}
			judged, refused := 0, false
			for _, v := range verdicts {
				if v.Outcome == apiserver.Deny {
					judged++
					refused = refused || v.Refused
				}
			}
			want := resolved(policy.Audit, rule.Validate.Overrides, in, with) == policy.Enforce
			if judged != 1 || refused != want {
				t.Fatalf("%s\nobject %s, labels %v: judged by %d bindings, refused %v, want %v\n%s", overrides, object, labels, judged, refused, want, bindingsText(p.result.Objects[0].Draft.Bindings))
			}
		}
	}
}

func randomOverrides(r *rand.Rand) string {
	var out []string
	for range 1 + r.IntN(3) {
		o := "action: " + []string{"Enforce", "Audit"}[r.IntN(2)]
		if r.IntN(2) == 0 {
			o += ", namespaces: " + []string{"[a]", "[a, b]", "['*']", "['?*']", "[]", "[c, b]"}[r.IntN(6)]
		}
		if r.IntN(2) == 0 {
			o += ", namespaceSelector: " + []string{
				"{matchLabels: {env: x}}", "{matchLabels: {env: x, tier: z}}", "{matchExpressions: [{key: env, operator: In, values: [x, z]}]}",
				"{matchExpressions: [{key: env, operator: NotIn, values: [x]}, {key: env, operator: Exists}]}", "{matchExpressions: [{key: tier, operator: DoesNotExist}]}",
				"{matchLabels: {env: x}, matchExpressions: [{key: tier, operator: NotIn, values: [x]}]}", "{}",
			}[r.IntN(7)]
		}
		out = append(out, "{"+o+"}")
	}
	return "[" + strings.Join(out, ", ") + "]"
}

// resolved is the action for a namespace by the letter of Kyverno's rule.
func resolved(base policy.Action, overrides []policy.ActionOverride, name string, labels map[string]string) policy.Action {
	for _, o := range overrides {
		named := o.Namespaces == nil
		for _, n := range o.Namespaces {
			named = named || n == name && name != "" || n == "*" || n == "?*" && name != ""
		}
		selected := true
		if s := o.NamespaceSelector; s != nil {
			for _, p := range s.MatchLabels {
				selected = selected && labels[p.Key] == p.Value
			}
			for _, e := range s.Expressions {
				v, present := labels[e.Key]
				in := present && strings.Contains(strings.Join(e.Values, " "), v)
				selected = selected && map[string]bool{"In": in, "NotIn": !in, "Exists": present, "DoesNotExist": !present}[e.Operator]
			}
		}
		if named && selected {
			return o.Action
		}
	}
	return base
}
