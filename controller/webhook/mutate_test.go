package webhook

import (
	"encoding/json"
	"strings"
	"testing"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
)

const twoMutations = `
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: b-second}
spec:
  rules:
  - name: copy
    match: {any: [{resources: {kinds: [ConfigMap]}}]}
    mutate: {patchStrategicMerge: {metadata: {annotations: {seen: "{{ request.object.metadata.labels.team }}"}}}}
---
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: a-first}
spec:
  rules:
  - name: team
    match: {any: [{resources: {kinds: [ConfigMap]}}]}
    mutate: {patchStrategicMerge: {metadata: {labels: {+(team): none}}}}
`

// patched is the object after the answer's patch, as the API server would have it.
func patched(t *testing.T, object string, patch []byte) string {
	t.Helper()
	if patch == nil {
		return object
	}
	steps, err := jsonpatch.DecodePatch(patch)
	if err != nil {
		t.Fatalf("%s: %v", patch, err)
	}
	out, err := steps.Apply([]byte(object))
	if err != nil {
		t.Fatalf("%s: %v", patch, err)
	}
	return string(out)
}

// Policies change an object in the order of their names, each with what the ones
// before made of it; asked again about the result, they change nothing.
func TestMutationsChainAndEnd(t *testing.T) {
	c := start(t, Options{})
	c.Set(set(policies(t, twoMutations)))
	got := c.ask(t, "/mutate/fail", plain)
	if !got.Allowed || got.PatchType == nil || *got.PatchType != "JSONPatch" {
		t.Fatalf("got %+v", got)
	}
	after := patched(t, plain, got.Patch)
	var object struct {
		Metadata struct{ Labels, Annotations map[string]string }
	}
	if err := json.Unmarshal([]byte(after), &object); err != nil {
		t.Fatal(err)
	}
	if object.Metadata.Labels["team"] != "none" || object.Metadata.Annotations["seen"] != "none" {
		t.Errorf("got %s", after)
	}
	if again := c.ask(t, "/mutate/fail", after); again.Patch != nil {
		t.Errorf("reinvoked, it changes more: %s", again.Patch)
	}
}

// A policy in shadow, and one on an object that goes away, change nothing.
func TestNothingToMutate(t *testing.T) {
	c := start(t, Options{})
	list := set(policies(t, twoMutations))
	for i := range list.Policies {
		list.Policies[i].Shadow = true
	}
	c.Set(list)
	if got := c.ask(t, "/mutate/fail", plain); !got.Allowed || got.Patch != nil {
		t.Errorf("in shadow: %+v", got)
	}
	c.Set(set(policies(t, twoMutations)))
	deletion := `{"operation":"DELETE","object":null,"oldObject":` + plain + `}`
	if got := c.ask(t, "/mutate/fail", plain, deletion); !got.Allowed || got.Patch != nil {
		t.Errorf("on DELETE: %+v", got)
	}
}

// A rule that errs refuses the request, or leaves the object to the other policies.
func TestMutationErrors(t *testing.T) {
	erring := strings.Replace(twoMutations, "labels.team", "nowhere", 1)
	c := start(t, Options{})
	c.Set(set(policies(t, erring)))
	got := c.ask(t, "/mutate/fail", plain)
	if got.Allowed || !strings.Contains(got.Result.Message, "mutation policy b-second error: failed to apply policy b-second rules [copy: ") {
		t.Errorf("got %+v", got)
	}
	c.Set(set(policies(t, strings.ReplaceAll(erring, "  rules:", "  failurePolicy: Ignore\n  rules:"))))
	got = c.ask(t, "/mutate/ignore", plain)
	if !got.Allowed || !strings.Contains(patched(t, plain, got.Patch), `"team":"none"`) || !strings.Contains(got.AuditAnnotations["violations"], "b-second") {
		t.Errorf("got %+v", got)
	}
}
