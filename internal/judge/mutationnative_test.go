package judge_test

import (
	"strings"
	"testing"

	"github.com/kvap/kvap/compile"
	"github.com/kvap/kvap/internal/judge"
	"github.com/kvap/kvap/interp"
	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/schema"
	"github.com/kvap/kvap/translate"
	"github.com/kvap/kvap/vap/apiserver"
)

const pullPolicy = `apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: pull}
spec:
  rules:
  - name: latest
    match: {any: [{resources: {kinds: [Pod]}}]}
    mutate:
      patchStrategicMerge:
        metadata: {labels: {+(pulled): "yes"}}
        spec: {(hostNetwork): true, containers: [{(image): "*:latest", imagePullPolicy: Always}]}
`

// A native form that is broken in any way makes another object of some Pod.
func TestBrokenMutationsAreFound(t *testing.T) {
	t.Parallel()
	file, found := policy.Parse("p.yaml", []byte(pullPolicy))
	if found.HasErrors() {
		t.Fatal(found)
	}
	schemas, err := schema.Builtin("1.36")
	if err != nil {
		t.Fatal(err)
	}
	request := &interp.Request{Admission: map[string]any{
		"operation": "CREATE", "name": "p", "namespace": "default", "userInfo": map[string]any{"username": "u"},
		"kind":     map[string]any{"group": "", "version": "v1", "kind": "Pod"},
		"resource": map[string]any{"group": "", "version": "v1", "resource": "pods"},
		"object": map[string]any{
			"apiVersion": "v1", "kind": "Pod", "metadata": map[string]any{"name": "p", "namespace": "default"},
			"spec": map[string]any{"hostNetwork": true, "containers": []any{
				map[string]any{"name": "a", "image": "i:1"}, map[string]any{"name": "b", "image": "i:latest"},
			}},
		},
	}}
	for _, mutant := range [][2]string{
		{"", ""}, // as it should be
		{"'Always'", "'Never'"},
		{"orValue('yes')", "orValue('no')"},
		{".endsWith(':latest')", ".endsWith(':1')"},
		{"imagePullPolicy:", "terminationMessagePolicy:"},
		{"!container", "container"},
		{"hostNetwork", "hostPID"},
	} {
		compiled := compile.Policies(compile.Input{Policies: file.Policies}, compile.Options{
			Translate: translate.Options{Release: 36, Schemas: schemas, Mutations: true},
		})
		changed := mutant[0] == ""
		for _, o := range compiled.Mutating {
			for i := range o.Policy.Spec.Mutations {
				if apply := o.Policy.Spec.Mutations[i].ApplyConfiguration; apply != nil && mutant[0] != "" {
					changed = changed || strings.Contains(apply.Expression, mutant[0])
					apply.Expression = strings.ReplaceAll(apply.Expression, mutant[0], mutant[1])
				}
			}
			for i, c := range o.Policy.Spec.MatchConditions {
				if mutant[0] != "" {
					changed = changed || strings.Contains(c.Expression, mutant[0])
					o.Policy.Spec.MatchConditions[i].Expression = strings.ReplaceAll(c.Expression, mutant[0], mutant[1])
				}
			}
		}
		if !changed {
			t.Fatalf("nothing has %s", mutant[0])
		}
		both, err := judge.NewChanger(compiled.Mutating, interp.New(file.Policies, nil, &interp.Offline{}, interp.Limits{}), apiserver.JudgeOptions{})
		if err != nil {
			t.Fatal(err)
		}
		got := both.Change(t.Context(), request)
		if different := got.Different != ""; different != (mutant[0] != "") || !got.Changed {
			t.Errorf("%s: %+v", mutant, got)
		}
	}
}
