package verify

import (
	"strings"
	"testing"
)

const ofResources = `
apiVersion: policies.kyverno.io/v1
kind: ValidatingPolicy
metadata: {name: of-resources}
spec:
  matchConstraints:
    resourceRules:
    - {apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [configmaps]}
    - {apiGroups: [""], apiVersions: [v1], operations: [UPDATE], resources: [configmaps]}
  validations: [{expression: "size(object.data) < 10", message: too many}]
`

// A resource that is named twice is the one that is known, and no other of nearly its name.
func TestResourcesNamedTwice(t *testing.T) {
	about := NewExplorer(about(parsed(t, ofResources), nil), theLab().setting.Translate.Schemas, 1).About()
	if got := strings.Join(about, " "); got != "/configmaps" {
		t.Errorf("about %s", got)
	}
}

// Of a kind without a schema, what looks like a container may be anything.
func TestContainersOfAnyKind(t *testing.T) {
	p := parsed(t, strings.NewReplacer("kinds: [Pod]", "kinds: [Thing]", "resources: {limits", "ports: [{containerPort: 1}]\n            resources: {limits").Replace(typical))
	e := NewExplorer(about(p, nil), theLab().setting.Translate.Schemas, 1)
	for range 2000 {
		e.Next()
	}
}

// A list is sometimes as long as a policy counts.
func TestCounts(t *testing.T) {
	p := parsed(t, strings.Replace(ofResources, "size(object.data) < 10", "size(object.metadata.finalizers) < 10", 1))
	e := NewExplorer(about(p, nil), theLab().setting.Translate.Schemas, 1)
	longest := 0
	for range 500 {
		for _, o := range []map[string]any{e.Next().Object} {
			if meta, ok := o["metadata"].(map[string]any); ok {
				list, _ := meta["finalizers"].([]any)
				longest = max(longest, len(list))
			}
		}
	}
	if longest < 10 {
		t.Errorf("the longest list has %d elements", longest)
	}
}

// What is executed in a container is a command, one that the policy names among others.
func TestCommands(t *testing.T) {
	p := parsed(t, strings.NewReplacer("kinds: [Pod]", "kinds: [Pod/exec]", "containers:\n          - (image): \"!busybox:*\"\n            resources: {limits: {memory: \"<=1Gi\"}}", "command: \"bash\"").Replace(typical))
	e := NewExplorer(about(p, nil), theLab().setting.Translate.Schemas, 1)
	seen := false
	for range 500 {
		if r := e.Next(); r.Subresource == "exec" {
			command, ok := r.Object["command"].([]any)
			if !ok || len(command) == 0 {
				t.Fatalf("no command: %s", r)
			}
			seen = seen || command[0] == "bash"
		}
	}
	if !seen {
		t.Error("nobody starts bash")
	}
}
