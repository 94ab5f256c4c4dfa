package webhook

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/kvap/kvap/interp"
	"github.com/kvap/kvap/policy"
)

// What was admitted is judged as it became, by policies that are served at any path, and what passes,
// is changed or excepted is recorded.
func TestAfterwards(t *testing.T) {
	f, ds := policy.Parse("policies.yaml", []byte(twoMutations+`
---
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: teams}
spec:
  failurePolicy: Ignore
  webhookConfiguration: {matchConditions: [{name: some, expression: "object.metadata.name != 'other'"}]}
  rules:
  - name: team
    match: {any: [{resources: {kinds: [ConfigMap]}}]}
    validate: {message: "It has a team.", pattern: {metadata: {labels: {team: "none"}}}}
  - name: owner
    match: {any: [{resources: {kinds: [ConfigMap]}}]}
    validate: {message: "It has an owner.", pattern: {metadata: {labels: {owner: "?*"}}}}
  - name: stage
    match: {any: [{resources: {kinds: [ConfigMap]}}]}
    validate: {message: "It has a stage.", pattern: {metadata: {labels: {stage: "?*"}}}}
---
apiVersion: kyverno.io/v1
kind: Policy
metadata: {name: elsewhere, namespace: dev}
spec:
  rules:
  - name: r
    match: {any: [{resources: {kinds: [ConfigMap]}}]}
    validate: {pattern: {kind: ConfigMap}}
---
apiVersion: kyverno.io/v2
kind: PolicyException
metadata: {name: unstaged, namespace: ops}
spec:
  exceptions: [{policyName: teams, ruleNames: [stage]}]
  match: {any: [{resources: {kinds: [ConfigMap]}}]}
`))
	if ds.HasErrors() {
		t.Fatal(ds)
	}
	var got []string
	s := New(Options{World: &interp.Offline{}, Record: func(r Record) {
		got = append(got, fmt.Sprintf("%s/%s %s %s %t %v", r.Policy, r.Rule, r.Status, r.Request.Resource, r.Mutates, r.Exceptions))
	}})
	created := func(name string) map[string]any {
		gvk := map[string]any{"group": "", "version": "v1", "kind": "ConfigMap"}
		return map[string]any{
			"uid": "1", "operation": "CREATE", "kind": gvk, "resource": map[string]any{"group": "", "version": "v1", "resource": "configmaps"}, "namespace": "prod", "name": name,
			"object":   map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"namespace": "prod", "name": name}},
			"userInfo": map[string]any{"username": "alice"},
		}
	}
	if err := s.Afterwards(t.Context(), created("plain")); err == nil {
		t.Error("a request is judged before there are policies")
	}
	policies := set(f.Policies)
	policies.Exceptions = f.Exceptions
	s.Set(policies)
	if err := s.Afterwards(t.Context(), created("plain")); err != nil {
		t.Fatal(err)
	}
	mutations := []string{"a-first/team pass ConfigMap/prod/plain true []", "b-second/copy pass ConfigMap/prod/plain true []"}
	want := append(mutations, "teams/team pass ConfigMap/prod/plain false []", "teams/stage skip ConfigMap/prod/plain false [ops/unstaged]")
	if !slices.Equal(got, want) {
		t.Errorf("recorded\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	got = nil
	if err := s.Afterwards(t.Context(), created("other")); err != nil || len(got) != 2 { // its match conditions are evaluated
		t.Errorf("recorded %q, %v", got, err)
	}
}
