package interp_test

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/kvap/kvap/internal/textdiff"
	"github.com/kvap/kvap/interp"
	"github.com/kvap/kvap/policy"
)

// generatePolicy has one rule, r, on Namespaces or ConfigMaps.
func generatePolicy(t *testing.T, kind, rule string) *policy.Policy {
	t.Helper()
	text := "apiVersion: kyverno.io/v1\nkind: " + kind + "\nmetadata: {name: p, namespace: team}\nspec:\n  rules:\n  - name: r\n"
	if !strings.HasPrefix(rule, "match:") {
		text += "    match: {any: [{resources: {kinds: [Namespace, ConfigMap]}}]}\n"
	}
	for line := range strings.Lines(rule) {
		text += "    " + line
	}
	f, ds := policy.Parse("p.yaml", []byte(text))
	if len(f.Policies) != 1 {
		t.Fatal(ds)
	}
	for _, r := range f.Policies[0].Rules {
		r.Invalid = false // some are refused when they are read; here is what they would do
	}
	return f.Policies[0]
}

func object(t *testing.T, text string) map[string]any {
	t.Helper()
	var m map[string]any
	readYAML(t, []byte(text), &m)
	return m
}

func requestOf(operation string, now, was map[string]any) *interp.Request {
	subject := now
	if subject == nil {
		subject = was
	}
	meta := subject["metadata"].(map[string]any)
	a := map[string]any{
		"operation": operation, "name": meta["name"], "object": nil, "oldObject": nil,
		"kind":     map[string]any{"group": "", "version": subject["apiVersion"], "kind": subject["kind"]},
		"userInfo": map[string]any{"username": "alice"},
	}
	if namespace, ok := meta["namespace"]; ok {
		a["namespace"] = namespace
	}
	if now != nil {
		a["object"] = now
	}
	if was != nil {
		a["oldObject"] = was
	}
	return &interp.Request{Admission: a, NamespaceLabels: map[string]string{}}
}

const namespaceTrigger = `{apiVersion: v1, kind: Namespace, metadata: {name: dev, uid: u1, labels: {go: "1"}}}`

// What a request means to a generate rule.
func TestGenerateTriggers(t *testing.T) {
	const generate = "\ngenerate: {apiVersion: v1, kind: ConfigMap, name: c, namespace: dev, synchronize: %v, data: {data: {a: b}}}\n"
	const selected = `match: {any: [{resources: {kinds: [Namespace], selector: {matchLabels: {go: "1"}}}}]}`
	const listed = `match: {any: [{resources: {kinds: [Namespace], operations: [DELETE]}}]}`
	const conditions = `preconditions: {all: [{key: "{{ request.object.metadata.labels.go }}", operator: Equals, value: "1"}]}`
	yes, no := object(t, namespaceTrigger), object(t, strings.Replace(namespaceTrigger, `"1"`, `"2"`, 1))
	for _, tt := range []struct {
		name, rule, operation string
		synchronize           bool
		now, was              map[string]any
		status                interp.Status
		action                interp.GenerateAction
	}{
		{"a trigger", selected, "CREATE", false, yes, nil, interp.Pass, interp.GenerateTargets},
		{"another object", selected, "CREATE", false, no, nil, interp.None, ""},
		{"a trigger no longer", selected, "UPDATE", true, no, yes, interp.Fail, interp.DeleteTargets},
		{"a trigger no longer, not synchronized", selected, "UPDATE", false, no, yes, interp.Fail, ""},
		{"a trigger now", selected, "UPDATE", true, yes, no, interp.Pass, interp.GenerateTargets},
		{"a deleted trigger", selected, "DELETE", true, nil, yes, interp.Fail, interp.DeleteTargets},
		{"a deletion that is the trigger", listed, "DELETE", true, nil, yes, interp.Fail, interp.GenerateTargets},
		{"preconditions hold", conditions, "CREATE", true, yes, nil, interp.Pass, interp.GenerateTargets},
		{"preconditions do not hold", conditions, "CREATE", true, no, nil, interp.Skip, ""},
		{"preconditions held", conditions, "UPDATE", true, no, yes, interp.Fail, interp.DeleteTargets},
		{"preconditions never held", conditions, "UPDATE", true, no, no, interp.Skip, ""},
		{"preconditions do not count on DELETE", conditions, "DELETE", true, nil, no, interp.Fail, interp.DeleteTargets},
	} {
		t.Run(tt.name, func(t *testing.T) {
			in := interp.New([]*policy.Policy{generatePolicy(t, "ClusterPolicy", tt.rule+fmt.Sprintf(generate, tt.synchronize))}, nil, &interp.Offline{}, interp.Limits{})
			got := in.GenerateTriggers(t.Context(), requestOf(tt.operation, tt.now, tt.was))
			if len(got) != 1 || got[0].Status != tt.status || got[0].Action != tt.action {
				t.Fatalf("got %+v", got)
			}
			if (got[0].Trigger != nil) != (tt.action != "") {
				t.Errorf("trigger %v", got[0].Trigger)
			}
		})
	}
}

func TestGenerateData(t *testing.T) {
	p := generatePolicy(t, "ClusterPolicy", `generate:
  apiVersion: v1
  kind: ConfigMap
  name: "made-for-{{ request.object.metadata.name }}"
  namespace: "{{ request.object.metadata.name }}"
  synchronize: true
  data:
    metadata: {name: other, namespace: other, labels: {own: x, app.kubernetes.io/managed-by: me}}
    data: {creator: "{{ request.userInfo.username }}"}
`)
	in := interp.New([]*policy.Policy{p}, nil, &interp.Offline{}, interp.Limits{})
	trigger := object(t, namespaceTrigger)
	g := in.Generate(t.Context(), requestOf("CREATE", trigger, nil), "p", "r", &interp.Offline{})
	if g.Status != interp.Pass || len(g.Targets) != 1 {
		t.Fatalf("%+v", g)
	}
	want := object(t, `
apiVersion: v1
kind: ConfigMap
metadata:
  name: made-for-dev
  namespace: dev
  labels:
    own: x
    app.kubernetes.io/managed-by: kyverno
    generate.kyverno.io/policy-name: p
    generate.kyverno.io/policy-namespace: ""
    generate.kyverno.io/rule-name: r
    generate.kyverno.io/trigger-group: ""
    generate.kyverno.io/trigger-version: v1
    generate.kyverno.io/trigger-kind: Namespace
    generate.kyverno.io/trigger-namespace: ""
    generate.kyverno.io/trigger-uid: u1
data: {creator: alice}
`)
	if d := textdiff.Values(want, g.Targets[0].Object); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	for key, value := range interp.TargetSelector(p, "r", trigger) {
		if want["metadata"].(map[string]any)["labels"].(map[string]any)[key] != value {
			t.Errorf("the selector has %s: %q", key, value)
		}
	}
	live := maps.Clone(want)
	live["metadata"] = map[string]any{"name": "made-for-dev", "namespace": "dev", "resourceVersion": "7"}
	over := g.Targets[0].Over(live)
	if over["metadata"].(map[string]any)["resourceVersion"] != "7" || g.Targets[0].Object["metadata"].(map[string]any)["resourceVersion"] != nil {
		t.Errorf("%v", over)
	}
	if again := g.Targets[0].Over(over); again != nil {
		t.Errorf("what is as wanted is written again: %v", again)
	}
}

// The API server takes only texts for labels and annotations. What a variable makes a
// number or boolean is one; what is in data stays as it is.
func TestGenerateLabelsAreTexts(t *testing.T) {
	p := generatePolicy(t, "ClusterPolicy", `context: [{name: of, variable: {value: {index: 3, half: 0.5, large: 12345678901, never: false}}}]
generate:
  apiVersion: example.com/v1
  kind: Widget
  name: a
  data:
    metadata:
      labels: {index: "{{ of.index }}", "yes": true, text: x}
      annotations: {half: "{{ of.half }}", large: "{{ of.large }}", never: "{{ of.never }}"}
    spec: {size: "{{ of.index }}"}
`)
	g := interp.New([]*policy.Policy{p}, nil, &interp.Offline{}, interp.Limits{}).Generate(t.Context(), requestOf("CREATE", object(t, namespaceTrigger), nil), "p", "r", &interp.Offline{})
	if g.Status != interp.Pass || len(g.Targets) != 1 {
		t.Fatalf("%+v", g)
	}
	made := g.Targets[0].Object
	meta := made["metadata"].(map[string]any)
	for key, want := range map[string]any{"index": "3", "yes": "true", "text": "x"} {
		if got := meta["labels"].(map[string]any)[key]; got != want {
			t.Errorf("label %s: %#v, want %#v", key, got, want)
		}
	}
	want := map[string]any{"half": "0.5", "large": "12345678901", "never": "false"}
	if d := textdiff.Values(want, meta["annotations"]); d != "" {
		t.Errorf("annotations (-want +got):\n%s", d)
	}
	if n := made["spec"].(map[string]any)["size"]; n != int64(3) {
		t.Errorf("data: %#v", n)
	}
}

func TestGenerateTargets(t *testing.T) {
	world := &interp.Offline{Objects: []map[string]any{
		object(t, `{apiVersion: v1, kind: Secret, metadata: {name: a, namespace: team, uid: s1, resourceVersion: "3", labels: {pick: "1"}, ownerReferences: [{uid: o}]}, data: {x: eA==}}`),
		object(t, `{apiVersion: v1, kind: Secret, metadata: {name: b, namespace: team, uid: s2}, data: {}}`),
	}}
	for _, tt := range []struct{ name, kind, rule, want string }{
		{"a clone", "ClusterPolicy", "generate: {apiVersion: v1, kind: Secret, name: c, namespace: dev, clone: {name: a, namespace: team}}", "pass: dev/c of a"},
		{"a clone of nothing", "ClusterPolicy", "generate: {apiVersion: v1, kind: Secret, name: c, namespace: dev, clone: {name: z, namespace: team}}", "error: there is no source Secret team/z"},
		{"a clone of itself", "ClusterPolicy", "generate: {apiVersion: v1, kind: Secret, name: a, namespace: team, clone: {name: a, namespace: team}}", "pass:"},
		{"a list", "ClusterPolicy", "generate: {namespace: dev, cloneList: {namespace: team, kinds: [v1/Secret]}}", "pass: dev/a of a, dev/b of b"},
		{"a selected list", "ClusterPolicy", `generate: {namespace: dev, cloneList: {namespace: team, kinds: [v1/Secret], selector: {matchLabels: {pick: "1"}}}}`, "pass: dev/a of a"},
		{"a list into its own namespace", "ClusterPolicy", "generate: {namespace: team, cloneList: {namespace: team, kinds: [v1/Secret]}}", "pass:"},
		{"a list of a kind without version", "ClusterPolicy", "generate: {namespace: dev, cloneList: {namespace: team, kinds: [Secret]}}", `error: the kind "Secret" of a list to copy must be apiVersion/Kind`},
		{"a loop", "ClusterPolicy", "generate: {foreach: [{list: \"['q', null, 'w']\", apiVersion: v1, kind: ConfigMap, name: \"{{ element }}-{{ elementIndex }}\", namespace: dev, data: {}}]}", "pass: dev/q-0, dev/w-2"},
		{"a loop with an error", "ClusterPolicy", "generate: {foreach: [{list: '`[{\"a\":1},{\"n\":\"w\"}]`', apiVersion: v1, kind: ConfigMap, name: \"{{ element.n }}\", namespace: dev, data: {}}]}", "error: dev/w element 0: variable substitution failed"},
		{"a variable that is not there", "ClusterPolicy", `generate: {apiVersion: v1, kind: ConfigMap, name: "{{ nope }}", namespace: dev, data: {}}`, "error: variable substitution failed"},
		{"a namespaced policy elsewhere", "Policy", "generate: {apiVersion: v1, kind: ConfigMap, name: a, namespace: \"{{ 'dev' }}\", data: {}}", `error: the policy of namespace team cannot generate into the namespace "dev"`},
		{"a namespaced policy from elsewhere", "Policy", "generate: {apiVersion: v1, kind: ConfigMap, name: a, namespace: team, clone: {name: a, namespace: \"{{ 'dev' }}\"}}", `error: the policy of namespace team cannot copy from the namespace "dev"`},
		{"nothing to make it of", "ClusterPolicy", "generate: {apiVersion: v1, kind: ServiceAccount, name: a, namespace: dev}", "pass: dev/a"},
		{"nothing to make it of in a namespaced policy", "Policy", "generate: {apiVersion: v1, kind: ServiceAccount, name: a, namespace: team}", "pass: team/a"},
		{"no name", "ClusterPolicy", "generate: {apiVersion: v1, kind: ConfigMap, name: \"{{ '' }}\", namespace: dev, data: {}}", "error: a generated object needs"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := generatePolicy(t, tt.kind, tt.rule+"\n")
			in := interp.New([]*policy.Policy{p}, nil, world, interp.Limits{})
			trigger := object(t, `{apiVersion: v1, kind: ConfigMap, metadata: {name: t, namespace: team, uid: u1}}`)
			before := mustJSON(t, world.Objects)
			got := describe(in.Generate(t.Context(), requestOf("CREATE", trigger, nil), p.FullName(), "r", world))
			if !strings.HasPrefix(got, tt.want) || !strings.HasPrefix(tt.want, "error") && got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
			if mustJSON(t, world.Objects) != before {
				t.Error("an object was changed")
			}
		})
	}
}

func describe(g *interp.Generation) string {
	var made []string
	for _, x := range g.Targets {
		text := x.Namespace + "/" + x.Name
		if x.Source != nil {
			text += " of " + x.Source.Name
			meta := x.Object["metadata"].(map[string]any)
			if _, has := meta["labels"].(map[string]any)[interp.CloneSourceLabel]; !has || meta["uid"] != nil || meta["resourceVersion"] != nil || meta["ownerReferences"] != nil {
				text += " with " + fmt.Sprint(meta)
			}
		}
		made = append(made, text)
	}
	out := string(g.Status) + ": " + strings.Join(made, ", ")
	if g.Status == interp.Error {
		if len(made) > 0 {
			out += " "
		}
		out += g.Message
	}
	return strings.TrimSuffix(out, " ")
}

// An exception that names a generate rule and matches its trigger keeps the rule from all that it does:
// at the request, and later when its work is done.
func TestGenerateExceptions(t *testing.T) {
	const rule = "generate: {apiVersion: v1, kind: ConfigMap, name: c, namespace: dev, synchronize: true, data: {data: {a: b}}}\n"
	const head = "apiVersion: kyverno.io/v2\nkind: PolicyException\nmetadata: {name: e, namespace: any}\nspec:\n"
	trigger := object(t, namespaceTrigger)
	other := object(t, strings.Replace(namespaceTrigger, `"1"`, `"2"`, 1))
	for name, tt := range map[string]struct {
		spec     string
		excepted bool
	}{
		"the rule":         {`{exceptions: [{policyName: p, ruleNames: [r]}], match: {any: [{resources: {kinds: [Namespace]}}]}}`, true},
		"a wildcard":       {`{exceptions: [{policyName: p, ruleNames: ["*"]}], match: {any: [{resources: {kinds: [Namespace]}}]}}`, true},
		"a name":           {`{exceptions: [{policyName: p, ruleNames: [r]}], match: {any: [{resources: {kinds: [Namespace], names: [d*]}}]}}`, true},
		"another rule":     {`{exceptions: [{policyName: p, ruleNames: [s]}], match: {any: [{resources: {kinds: [Namespace]}}]}}`, false},
		"another policy":   {`{exceptions: [{policyName: q, ruleNames: [r]}], match: {any: [{resources: {kinds: [Namespace]}}]}}`, false},
		"another kind":     {`{exceptions: [{policyName: p, ruleNames: [r]}], match: {any: [{resources: {kinds: [Secret]}}]}}`, false},
		"conditions":       {`{exceptions: [{policyName: p, ruleNames: [r]}], match: {any: [{resources: {kinds: [Namespace]}}]}, conditions: {all: [{key: "{{ request.name }}", operator: Equals, value: dev}]}}`, true},
		"other conditions": {`{exceptions: [{policyName: p, ruleNames: [r]}], match: {any: [{resources: {kinds: [Namespace]}}]}, conditions: {all: [{key: "{{ request.name }}", operator: Equals, value: qa}]}}`, false},
	} {
		f, found := policy.Parse("e.yaml", []byte(head+"  "+tt.spec+"\n"))
		if found.HasErrors() || len(f.Exceptions) != 1 {
			t.Fatalf("%s: %v", name, found)
		}
		in := interp.New([]*policy.Policy{generatePolicy(t, "ClusterPolicy", rule)}, f.Exceptions, &interp.Offline{}, interp.Limits{})
		for operation, request := range map[string]*interp.Request{
			"CREATE": requestOf("CREATE", trigger, nil), "UPDATE": requestOf("UPDATE", trigger, other), "DELETE": requestOf("DELETE", nil, trigger),
		} {
			got := in.GenerateTriggers(t.Context(), request)
			if len(got) != 1 || (got[0].Action == "") != tt.excepted || (got[0].Status == interp.Skip) != tt.excepted || (len(got[0].Exceptions) == 1) != tt.excepted {
				t.Errorf("%s: %s: %+v", name, operation, got)
			}
			if operation == "DELETE" {
				continue
			}
			if g := in.Generate(t.Context(), request, "p", "r", &interp.Offline{}); (len(g.Targets) == 0) != tt.excepted || (g.Status == interp.Skip) != tt.excepted {
				t.Errorf("%s: %s: %+v", name, operation, g)
			}
		}
	}
}
