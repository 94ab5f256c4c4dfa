package webhook

import (
	"encoding/json"
	"strings"
	"testing"
)

const mutatingPolicies = `
apiVersion: policies.kyverno.io/v1
kind: MutatingPolicy
metadata: {name: a-first}
spec:
  matchConstraints: {resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [configmaps]}]}
  mutations:
  - patchType: ApplyConfiguration
    applyConfiguration: {expression: 'Object{metadata: Object.metadata{labels: {"team": "none"}}}'}
---
apiVersion: policies.kyverno.io/v1
kind: MutatingPolicy
metadata: {name: b-second}
spec:
  matchConstraints: {resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [configmaps]}]}
  mutations:
  - patchType: ApplyConfiguration
    applyConfiguration:
      expression: 'Object{metadata: Object.metadata{annotations: {"seen": string(object.metadata.labels.team), "asked": string(has(request.object.metadata.labels))}}}'
---
apiVersion: policies.kyverno.io/v1
kind: MutatingPolicy
metadata: {name: c-others}
spec:
  matchConstraints: {resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [configmaps]}]}
  targetMatchConstraints: {expression: object}
  mutations:
  - patchType: ApplyConfiguration
    applyConfiguration: {expression: 'Object{metadata: Object.metadata{labels: {"team": "others"}}}'}
`

const bare = `{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "team"}}`

// MutatingPolicies change an object in the order of their names. Each sees what the ones
// before made of it, and what was asked for.
func TestMutatingPolicies(t *testing.T) {
	c := start(t, Options{})
	c.Set(set(policies(t, mutatingPolicies)))
	got := c.ask(t, "/mutate/fail/once", bare)
	if !got.Allowed {
		t.Fatalf("got %+v", got)
	}
	var object struct {
		Metadata struct{ Labels, Annotations map[string]string }
	}
	if err := json.Unmarshal([]byte(patched(t, bare, got.Patch)), &object); err != nil {
		t.Fatal(err)
	}
	if m := object.Metadata; m.Labels["team"] != "none" || m.Annotations["seen"] != "none" || m.Annotations["asked"] != "false" {
		t.Errorf("got %+v", m)
	}
}

// One that errs refuses the request, unless its failure policy is Ignore: then nothing but
// its own patch is lost.
func TestMutatingPolicyThatErrs(t *testing.T) {
	text := strings.Replace(mutatingPolicies, `(object.metadata.labels.team)`, `(object.metadata.labels.nope)`, 1)
	c := start(t, Options{})
	c.Set(set(policies(t, text)))
	if got := c.ask(t, "/mutate/fail/once", bare); got.Allowed || !strings.Contains(got.Result.Message, "b-second") || !strings.Contains(got.Result.Message, "no such key") {
		t.Errorf("got %+v", got)
	}
	c.Set(set(policies(t, strings.ReplaceAll(text, "\nspec:\n", "\nspec:\n  failurePolicy: Ignore\n"))))
	got := c.ask(t, "/mutate/ignore/once", bare)
	if after := patched(t, bare, got.Patch); !got.Allowed || !strings.Contains(after, `"team":"none"`) || strings.Contains(after, "asked") {
		t.Errorf("got %+v: %s", got, after)
	}
}
