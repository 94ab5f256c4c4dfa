package interp

import (
	"strings"
	"testing"

	"github.com/kvap/kvap/internal/textdiff"
)

// generatingPolicy is a policy on Namespaces, unless spec says what it matches.
func generatingPolicy(kind, spec string) string {
	if !strings.Contains(spec, "matchConstraints") {
		spec = `matchConstraints: {resourceRules: [{apiGroups: [""], apiVersions: [v1], resources: [namespaces], operations: [CREATE, UPDATE]}]}` + "\n" + spec
	}
	namespace := ""
	if strings.HasPrefix(kind, "Namespaced") {
		namespace = ", namespace: team"
	}
	return "apiVersion: policies.kyverno.io/v1\nkind: " + kind + "\nmetadata: {name: p" + namespace + "}\nspec:\n" + indent(2, spec) + "\n"
}

// generates is a policy with one expression.
func generates(expression string) string {
	return "generate: [{expression: '" + strings.ReplaceAll(expression, "'", "''") + "'}]"
}

func team(t *testing.T, labels string) map[string]any {
	t.Helper()
	return object(t, `{apiVersion: v1, kind: Namespace, metadata: {name: team, uid: "7", labels: {`+labels+`}}}`)
}

func generatingWorld(t *testing.T) *Offline {
	t.Helper()
	return &Offline{
		Objects: []map[string]any{
			object(t, `{apiVersion: v1, kind: Secret, metadata: {name: pull, namespace: base, uid: "9", resourceVersion: "3", creationTimestamp: "2026-01-01T00:00:00Z", ownerReferences: [{name: o}], annotations: {a: b}}, data: {k: dg==}, status: {x: 1}}`),
		},
		Plural:   func(_, kind string) string { return strings.ToLower(kind) + "s" },
		Unscoped: func(_, kind string) bool { return kind == "Namespace" || strings.HasPrefix(kind, "Cluster") },
		Complete: true,
	}
}

func generate(t *testing.T, source string, admission map[string]any) *Generation {
	t.Helper()
	f := parse(t, source)
	world := generatingWorld(t)
	in := New(f.Policies, f.Exceptions, world, Limits{})
	return in.Generate(t.Context(), &Request{Admission: admission}, f.Policies[0].FullName(), "p", world)
}

const config = `[{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c", "labels": {"a": "b"}}, "data": {"who": string(object.metadata.name)}}]`

// What an expression applies is made, with labels that lead back to the policy and to what
// triggered it. Literals of mixed types are allowed.
func TestGenerating(t *testing.T) {
	labels := func(more string) string {
		return `{app.kubernetes.io/managed-by: kyverno, generate.kyverno.io/policy-name: p, generate.kyverno.io/policy-namespace: "", generate.kyverno.io/policy-kind: GeneratingPolicy,
		generate.kyverno.io/trigger-group: "", generate.kyverno.io/trigger-version: v1, generate.kyverno.io/trigger-kind: Namespace, generate.kyverno.io/trigger-namespace: "",
		generate.kyverno.io/trigger-name: team, generate.kyverno.io/trigger-uid: "7"` + more + `}`
	}
	const source = `, generate.kyverno.io/clone-source: "", generate.kyverno.io/source-group: "", generate.kyverno.io/source-version: v1, generate.kyverno.io/source-kind: Secret,
		generate.kyverno.io/source-namespace: base, generate.kyverno.io/source-uid: "9"`
	for _, tt := range []struct {
		name, spec string
		want       Status
		message    string
		objects    []string
	}{
		{"data", generates(`generator.Apply(object.metadata.name, ` + config + `)`), Pass, "policy evaluated successfully",
			[]string{`{apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: team, labels: ` + labels(", a: b") + `}, data: {who: team}}`}},
		{"a copy", generates(`generator.apply("team", [resource.get("v1", "secrets", "base", "pull")])`), Pass, "",
			[]string{`{apiVersion: v1, kind: Secret, metadata: {name: pull, namespace: team, annotations: {a: b}, labels: ` + labels(source) + `}, data: {k: dg==}, status: {x: 1}}`}},
		{"a list", generates(`generator.apply("team", [resource.list("v1", "secrets", "base")])`), Pass, "",
			[]string{`{apiVersion: v1, kind: Secret, metadata: {name: pull, namespace: team, annotations: {a: b}, labels: ` + labels(source) + `}, data: {k: dg==}, status: {x: 1}}`}},
		{"a copy onto itself", generates(`generator.apply("base", [resource.get("v1", "secrets", "base", "pull")])`), Pass, "", nil},
		{"what does not exist", generates(`generator.apply("team", [resource.get("v1", "secrets", "base", "none")])`), Error, "is null", nil},
		{"no namespace", generates(`generator.apply("team", [{"apiVersion": "a/v1", "kind": "ClusterThing", "metadata": {"name": "c", "namespace": "x"}}])`), Pass, "",
			[]string{`{apiVersion: a/v1, kind: ClusterThing, metadata: {name: c, labels: ` + labels("") + `}}`}},
		{"a condition that is not met", generates(`object.metadata.name == "other" ? generator.apply("x", [{}]) : true`), Pass, "", nil},
		{"a loop, and doubles", "variables: [{name: l, expression: \"'a,b'.split(',')\"}]\n" + generates(`variables.l.all(n, generator.apply(n, [{"apiVersion": "v1", "kind": "X", "metadata": {"name": "c"}, "count": json.unmarshal("3"), "half": 0.5}]))`), Pass, "",
			[]string{
				`{apiVersion: v1, kind: X, metadata: {name: c, namespace: a, labels: ` + labels("") + `}, count: 3, half: 0.5}`,
				`{apiVersion: v1, kind: X, metadata: {name: c, namespace: b, labels: ` + labels("") + `}, count: 3, half: 0.5}`,
			}},
		{"owners that the policy gives", generates(`generator.apply("team", [{"apiVersion": "v1", "kind": "X", "metadata": {"name": "c", "ownerReferences": [{"uid": object.metadata.uid}]}}])`), Pass, "",
			[]string{`{apiVersion: v1, kind: X, metadata: {name: c, namespace: team, ownerReferences: [{uid: "7"}], labels: ` + labels("") + `}}`}},
		{"no boolean", generates(`object`), Error, "must evaluate to bool", nil},
		{"no name", generates(`generator.apply("team", [{"apiVersion": "v1", "kind": "X"}])`), Error, "needs an apiVersion, a kind and a name", nil},
		{"no object", generates(`generator.apply("team", [dyn(1)])`), Error, "no object", nil},
		{"what is not there for the kind", generates(`user.parseServiceAccount("x").Name == ""`), Error, "undeclared", nil},
		{"no authorizer", generates(`authorizer.path("/").check("get").allowed()`), Error, "undeclared", nil},
		{"an error behind the first entry", `generate: [{expression: 'generator.apply("team", [{"apiVersion": "v1", "kind": "X", "metadata": {"name": "c"}}])'}, {expression: object.none}, {expression: 'object.none == 1'}]`, Error, "must evaluate to bool", nil},
		{"what stays of an error", `generate: [{expression: 'generator.apply("team", [{"apiVersion": "v1", "kind": "X", "metadata": {"name": "c"}}])'}, {expression: 'object.none == 1'}]`, Error, "no such key",
			[]string{`{apiVersion: v1, kind: X, metadata: {name: c, namespace: team, labels: ` + labels("") + `}}`}},
		{"an annotation that errs", "auditAnnotations: [{key: a, valueExpression: object.none}]\n" + generates("true"), Error, "auditAnnotation", nil},
		{"a condition", "matchConditions: [{name: a, expression: \"object.metadata.name == 'x'\"}]\n" + generates("true"), Skip, "match conditions not met", nil},
		{"a condition that errs", "matchConditions: [{name: a, expression: \"object.none == 'x'\"}]\n" + generates("true"), Error, "failed to evaluate policy", nil},
		{"variables are not known to conditions", "variables: [{name: v, expression: 'true'}]\nmatchConditions: [{name: a, expression: variables.v}]\n" + generates("true"), Error, "undefined field", nil},
		{"an audit annotation of another type", "auditAnnotations: [{key: a, valueExpression: '1'}]\n" + generates("true"), Error, "not a string", nil},
		{"a template", `
generate:
- template:
    value: |
      apiVersion: v1
      kind: ConfigMap
      metadata: {name: a, namespace: there}
      data: {k: (( as it stands ))}
- template:
    interpolate: cel
    value: |
      apiVersion: v1
      kind: ConfigMap
      metadata: {name: "(( object.metadata.name ))-b-((1 + 1))", namespace: ((object.metadata.name))}
      count: ((size(object.metadata.name)))
      text: " ((true))"
      whole: ((object.metadata.labels))
      plain: 3
      escaped: \((x))
      list: [1, "((object.kind))"]
`, Pass, "", []string{
			`{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: there, labels: ` + labels("") + `}, data: {k: (( as it stands ))}}`,
			`{apiVersion: v1, kind: ConfigMap, metadata: {name: team-b-2, namespace: team, labels: ` + labels("") + `}, count: 4, text: " true", whole: {x: "1"}, plain: 3, escaped: "((x))", list: [1, Namespace]}`,
		}},
		{"a map within a text", "generate: [{template: {interpolate: cel, value: 'kind: a((object))'}}]", Error, "a string, a number or a boolean", nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := generate(t, generatingPolicy("GeneratingPolicy", tt.spec), create(team(t, `x: "1"`)))
			if got.Status != tt.want || got.Rule != "p" || got.Policy != "p" || !strings.Contains(got.Message, tt.message) {
				t.Fatalf("%+v", got)
			}
			var objects, want []any
			for _, o := range got.Targets {
				objects = append(objects, o.Object)
			}
			for _, o := range tt.objects {
				want = append(want, object(t, o))
			}
			if d := textdiff.Values(want, objects); d != "" {
				t.Errorf("-want +got:\n%s", d)
			}
		})
	}
}

// A policy of a namespace makes nothing outside of it, whatever it says.
func TestGeneratingWithin(t *testing.T) {
	const pods = `matchConstraints: {resourceRules: [{apiGroups: [""], apiVersions: [v1], resources: [configmaps], operations: [CREATE]}]}` + "\n"
	const x = `{"apiVersion": "v1", "kind": "X", "metadata": {"name": "c", "namespace": "other"}}`
	for _, tt := range []struct {
		spec, namespace string
		want            Status
		message         string
		made            int
	}{
		{generates(`generator.Apply([` + x + `])`), "team", Pass, "", 1},
		{generates(`generator.Apply([` + x + `])`), "elsewhere", None, "", 0},
		{generates(`generator.apply("other", [` + x + `])`), "team", Error, "cannot be read", 0},
		{generates(`generator.apply([{"apiVersion": "v1", "kind": "ClusterX", "metadata": {"name": "c"}}])`), "team", Error, "in no namespace", 0},
		{generates(`generator.apply([resource.get("v1", "secrets", "base", "pull")])`), "team", Error, "cannot be read", 0},
		{generates(`generator.apply([resource.get("v1", "secrets", "pull")])`), "team", Error, "null", 0},
		{"generate: [{template: {value: '{apiVersion: v1, kind: X, metadata: {name: c}}'}}]", "team", Pass, "", 1},
		{"generate: [{template: {value: '{apiVersion: v1, kind: X, metadata: {name: c, namespace: other}}'}}]", "team", Error, "cannot generate into", 0},
	} {
		o := object(t, `{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: `+tt.namespace+`}}`)
		got := generate(t, generatingPolicy("NamespacedGeneratingPolicy", pods+tt.spec), create(o))
		if got.Status != tt.want || !strings.Contains(got.Message, tt.message) || len(got.Targets) != tt.made {
			t.Errorf("%s: %+v", tt.spec, got)
		}
		for _, made := range got.Targets {
			if made.Namespace != "team" || metaText(made.Object, "namespace") != "team" {
				t.Errorf("%s: %+v", tt.spec, made)
			}
		}
	}
}

// What a request means to a policy: what is triggered, what is no longer, and what has
// nothing to do.
func TestGeneratingTriggers(t *testing.T) {
	const rules = `matchConstraints: {objectSelector: {matchLabels: {x: "1"}}, resourceRules: [{apiGroups: [""], apiVersions: [v1], resources: [namespaces], operations: [OPS]}]}` + "\n"
	const sync = "evaluation: {synchronize: {enabled: true}}\n"
	const condition = "matchConditions: [{name: a, expression: \"object.metadata.labels.?y.orValue('') != 'no'\"}]\n"
	const in, out, refused = `x: "1"`, `x: "2"`, `x: "1", "y": "no"`
	for _, tt := range []struct {
		name, operations, spec, operation, now, was string
		want                                        Status
		action                                      GenerateAction
	}{
		{"created", "CREATE, UPDATE", "", "CREATE", in, "", Pass, GenerateTargets},
		{"created otherwise", "CREATE, UPDATE", "", "CREATE", out, "", None, ""},
		{"there before", "CREATE", "", "", in, "", Pass, GenerateTargets},
		{"there before, and asked about updates only", "UPDATE", "", "", in, "", None, ""},
		{"updated", "CREATE, UPDATE", "", "UPDATE", in, in, Pass, GenerateTargets},
		{"no longer selected", "CREATE, UPDATE", sync, "UPDATE", out, in, Fail, DeleteTargets},
		{"no longer, and nothing is kept in step", "CREATE, UPDATE", "", "UPDATE", out, in, None, ""},
		{"no longer by a condition", "CREATE, UPDATE", sync + condition, "UPDATE", refused, in, Fail, DeleteTargets},
		{"never by a condition", "CREATE, UPDATE", sync + condition, "UPDATE", refused, refused, Skip, ""},
		{"never was", "CREATE, UPDATE", sync, "UPDATE", out, out, None, ""},
		{"an update that is not named", "CREATE", sync, "UPDATE", in, in, None, ""},
		{"an update that is not named, and no longer", "CREATE", sync, "UPDATE", out, in, Fail, DeleteTargets},
		{"deleted", "CREATE", sync, "DELETE", "", in, Fail, DeleteTargets},
		{"deleted, and nothing is kept in step", "CREATE", "", "DELETE", "", in, None, ""},
		{"deleted, and all operations", "'*'", "", "DELETE", "", in, None, ""},
		{"another is deleted", "CREATE", sync, "DELETE", "", out, None, ""},
		{"asked about deletions", "DELETE", sync, "DELETE", "", in, Pass, GenerateTargets},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := parse(t, generatingPolicy("GeneratingPolicy", strings.Replace(rules, "OPS", tt.operations, 1)+tt.spec+generates("object.metadata.name == 'team'")))
			var now, was map[string]any
			if tt.now != "" {
				now = team(t, tt.now)
			}
			if tt.was != "" {
				was = team(t, tt.was)
			}
			admission := admissionRequest(tt.operation, now, was)
			if tt.operation == "" {
				delete(admission, "resource")
			}
			got := New(f.Policies, nil, generatingWorld(t), Limits{}).GenerateTriggers(t.Context(), &Request{Admission: admission})
			if len(got) != 1 || got[0].Status != tt.want || got[0].Action != tt.action || got[0].Rule != "p" || (tt.action != "") != (got[0].Trigger != nil) {
				t.Errorf("%+v", got)
			}
			if tt.action != GenerateTargets {
				return
			}
			made := generate(t, generatingPolicy("GeneratingPolicy", strings.Replace(rules, "OPS", tt.operations, 1)+tt.spec+generates("object.metadata.name == 'team'")), admission)
			if made.Status != Pass {
				t.Errorf("%+v", made)
			}
		})
	}
}

// An exception keeps a policy from making anything, whatever result it asks for; one with
// values is for the expressions to ask.
func TestGeneratingExceptions(t *testing.T) {
	exception := func(spec string) string {
		return "---\napiVersion: policies.kyverno.io/v1\nkind: PolicyException\nmetadata: {name: e, namespace: any}\nspec:\n  policyRefs: [{kind: GeneratingPolicy, name: p}]\n" + indent(2, spec)
	}
	const makes = `exceptions.allowedValues.all(v, generator.apply(v, [{"apiVersion": "v1", "kind": "X", "metadata": {"name": "c"}}]))`
	for spec, want := range map[string]struct {
		status Status
		action GenerateAction
		made   int
	}{
		"reportResult: skip": {Skip, "", 0},
		"reportResult: pass": {Pass, "", 0},
		"matchConditions: [{name: a, expression: \"object.metadata.name == 'x'\"}]": {Pass, GenerateTargets, 0},
		"allowedValues: [a, b]": {Pass, GenerateTargets, 2},
	} {
		source := generatingPolicy("GeneratingPolicy", generates(makes)) + exception(spec)
		f := parse(t, source)
		request := &Request{Admission: create(team(t, ""))}
		triggers := New(f.Policies, f.Exceptions, generatingWorld(t), Limits{}).GenerateTriggers(t.Context(), request)
		got := generate(t, source, create(team(t, "")))
		if triggers[0].Status != want.status || triggers[0].Action != want.action || got.Status != want.status || len(got.Targets) != want.made || got.Excepted != (want.action == "") {
			t.Errorf("%s: %+v, %+v", spec, triggers[0], got)
		}
	}
}

// What is there is written over only where the policy has made it for the same trigger.
func TestGeneratedOver(t *testing.T) {
	for spec, synchronize := range map[string]bool{"": false, "evaluation: {synchronize: {enabled: true}}\n": true} {
		got := generate(t, generatingPolicy("GeneratingPolicy", spec+generates(`generator.Apply("team", `+config+`)`)), create(team(t, "")))
		g := got.Targets[0]
		if g.Synchronize != synchronize || g.Over(nil) == nil {
			t.Fatalf("%+v", g)
		}
		live := copied(g.Object)
		if g.Over(live) != nil {
			t.Error("it is as it should be, and written")
		}
		live["data"] = map[string]any{"who": "changed"}
		if over := g.Over(live); over == nil || digText(over, "data", "who") != "team" {
			t.Errorf("its own is left: %v", over)
		}
		labels := digMap(live, "metadata", "labels")
		labels["generate.kyverno.io/trigger-uid"] = "8"
		if g.Over(live) != nil {
			t.Error("what it made for another trigger is written over")
		}
		digMap(live, "metadata")["labels"] = map[string]any{}
		if g.Over(live) != nil {
			t.Error("somebody else's is written over")
		}
	}
}
