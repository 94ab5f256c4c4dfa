package judge_test

import (
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/kvap/kvap/compile"
	"github.com/kvap/kvap/internal/judge"
	"github.com/kvap/kvap/interp"
	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/schema"
	"github.com/kvap/kvap/translate"
	"github.com/kvap/kvap/vap/apiserver"
)

// sameKeysPod has two elements of one key in every list in which an API server takes them.
const sameKeysPod = `
apiVersion: v1
kind: Pod
metadata: {name: p, namespace: default, finalizers: [a.io/f, a.io/f]}
spec:
  imagePullSecrets: [{name: s}, {name: t}, {name: s}]
  hostAliases: [{ip: 1.2.3.4, hostnames: [a]}, {ip: 1.2.3.4, hostnames: [b]}]
  containers:
  - name: a
    image: i:latest
    ports: [{containerPort: 80, protocol: TCP, name: http}, {containerPort: 80, protocol: TCP, name: web}]
    env: [{name: A, value: "1"}, {name: B, value: "2"}, {name: A, value: "3"}]
  - name: b
    image: i:1
`

// changed is what both make of a Pod by a rule with a patch, in which the native form has other
// words for some.
func changed(t *testing.T, patch, pod string, words ...string) (judge.Changed, *compile.Rule) {
	t.Helper()
	text := "apiVersion: kyverno.io/v1\nkind: ClusterPolicy\nmetadata: {name: p}\nspec:\n  rules:\n  - name: r\n" +
		"    match: {any: [{resources: {kinds: [Pod]}}]}\n    mutate: " + patch + "\n"
	file, found := policy.Parse("p.yaml", []byte(text))
	if found.HasErrors() {
		t.Fatal(found)
	}
	schemas, err := schema.Builtin("1.36")
	if err != nil {
		t.Fatal(err)
	}
	compiled := compile.Policies(compile.Input{Policies: file.Policies}, compile.Options{
		Translate: translate.Options{Release: 36, Schemas: schemas, Mutations: true},
	})
	if len(compiled.Mutating) == 0 {
		t.Fatalf("%s is not native: %v", patch, compiled.Diagnostics)
	}
	for _, o := range compiled.Mutating {
		for i, m := range o.Policy.Spec.Mutations {
			if a := m.ApplyConfiguration; a != nil {
				a.Expression = strings.NewReplacer(words...).Replace(a.Expression)
			} else {
				o.Policy.Spec.Mutations[i].JSONPatch.Expression = strings.NewReplacer(words...).Replace(m.JSONPatch.Expression)
			}
		}
	}
	var object map[string]any
	if err := yaml.Unmarshal([]byte(pod), &object); err != nil {
		t.Fatal(err)
	}
	both, err := judge.NewChanger(compiled.Mutating, interp.New(file.Policies, nil, &interp.Offline{}, interp.Limits{}), apiserver.JudgeOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return both.Change(t.Context(), &interp.Request{Admission: map[string]any{
		"operation": "CREATE", "name": "p", "namespace": "default", "userInfo": map[string]any{"username": "u"},
		"kind":     map[string]any{"group": "", "version": "v1", "kind": "Pod"},
		"resource": map[string]any{"group": "", "version": "v1", "resource": "pods"}, "object": object,
	}}), compiled.Rules[0]
}

// Elements of one key that an API server takes are no error natively, and the only difference
// that is excused is what becomes of these, where a diagnostic tells of it.
func TestElementsOfOneKey(t *testing.T) {
	t.Parallel()
	for patch, mutant := range map[string][2]string{
		`{patchStrategicMerge: {metadata: {labels: {a: b}}}}`:                                                                        {`"b"`, `"c"`},
		`{patchStrategicMerge: {spec: {containers: [{(image): "*:latest", tty: true}]}}}`:                                            {`true`, `false`},
		`{patchStrategicMerge: {spec: {containers: [{(name): "*", env: [{name: C, value: "4"}]}]}}}`:                                 {`"4"`, `"5"`},
		`{patchStrategicMerge: {spec: {containers: [{(name): "*", env: [{name: A, value: "4"}]}]}}}`:                                 {`"b"`, `"c"`},
		`{patchStrategicMerge: {spec: {containers: [{(name): "*", env: [{(name): "B", value: "4"}]}]}}}`:                             {`"4"`, `"5"`},
		`{patchStrategicMerge: {spec: {containers: [{(name): "*", env: [{(name): "*", value: "4"}]}]}}}`:                             {`"4"`, `"5"`},
		`{patchStrategicMerge: {spec: {hostAliases: [{ip: 4.3.2.1, hostnames: [c]}]}}}`:                                              {`"c"`, `"d"`},
		`{patchStrategicMerge: {spec: {imagePullSecrets: [{name: u}]}}}`:                                                             {`"u"`, `"v"`},
		`{foreach: [{list: request.object.spec.containers, patchStrategicMerge: {metadata: {labels: {"c{{ element.name }}": v}}}}]}`: {`"v"`, `"w"`},
	} {
		got, rule := changed(t, patch, sameKeysPod)
		if got.Native != apiserver.Allow || got.Different != "" || !got.Confused {
			t.Errorf("%s: %+v", patch, got)
		}
		told := false
		for _, code := range rule.Codes {
			told = told || code.String() == "KV328"
		}
		if !told {
			t.Errorf("%s: nobody tells of elements of one key: %v", patch, rule.Codes)
		}
		if mutant[0] == `"b"` && strings.Contains(patch, "env") {
			continue // the patch is about nothing but elements of one key
		}
		for _, q := range []string{`"`, `'`} { // as CEL writes texts
			from, to := strings.ReplaceAll(mutant[0], `"`, q), strings.ReplaceAll(mutant[1], `"`, q)
			if got, _ := changed(t, patch, sameKeysPod, from, to); got.Different == "" && q == `'` {
				t.Errorf("%s with %s: nothing is different", patch, to)
			}
		}
	}
}

// A JSON patch is no merge: nothing is excused, and nothing is told.
func TestElementsOfOneKeyInJSONPatches(t *testing.T) {
	t.Parallel()
	got, rule := changed(t, `{patchesJson6902: "- {op: add, path: /spec/containers/0/env/-, value: {name: A, value: x}}"}`, sameKeysPod)
	if got.Native != apiserver.Allow || got.Different != "" || got.Confused || len(rule.Codes) > 0 {
		t.Errorf("%+v %v", got, rule.Codes)
	}
}

// Where an API server wants elements of one key refused, it does so natively.
func TestElementsOfOneKeyThatAreRefused(t *testing.T) {
	t.Parallel()
	pod := strings.Replace(sameKeysPod, "name: b", "name: a", 1)
	for _, patch := range []string{
		`{patchStrategicMerge: {metadata: {labels: {a: b}}}}`,
		`{patchStrategicMerge: {spec: {containers: [{(name): "*", tty: true}]}}}`,
	} {
		if got, _ := changed(t, patch, pod); got.Different != "" || !got.Confused {
			t.Errorf("%s: %+v", patch, got)
		}
	}
}
