//go:build e2e

package background

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

const rollsOut = `
apiVersion: policies.kyverno.io/v1
kind: MutatingPolicy
metadata: {name: rolls-out}
spec:
  evaluation: {mutateExisting: {enabled: true}}
  matchConstraints:
    objectSelector: {matchLabels: {rolls: out}}
    resourceRules: [{apiGroups: [""], apiVersions: [v1], resources: [secrets], operations: [CREATE, UPDATE]}]
  targetMatchConstraints:
    objectSelector: {matchLabels: {rolls: out}}
    resourceRules: [{apiGroups: [""], apiVersions: [v1], resources: [configmaps], operations: [CREATE]}]
  targetMatchConditions: [{name: same, expression: object.metadata.namespace == request.namespace}]
  mutations:
  - patchType: ApplyConfiguration
    applyConfiguration:
      expression: >-
        Object{metadata: Object.metadata{annotations: {"secret": request.object.metadata.resourceVersion}}}
---
apiVersion: policies.kyverno.io/v1
kind: NamespacedMutatingPolicy
metadata: {name: follows, namespace: rolls-a}
spec:
  evaluation: {mutateExisting: {enabled: true}}
  matchConstraints:
    objectSelector: {matchLabels: {follow: me}}
    resourceRules: [{apiGroups: [""], apiVersions: [v1], resources: [configmaps], operations: [CREATE]}]
  targetMatchConstraints: {expression: 'resource.List("v1", "secrets")'}
  mutations:
  - patchType: JSONPatch
    jsonPatch: {expression: '[JSONPatch{op: "add", path: "/metadata/labels", value: {"followed": string(request.object.metadata.name)}}]'}
`

// A MutatingPolicy changes the objects that its targets select, of the same namespace by its
// condition, and one of a namespace those of it.
func TestMutatingPolicyTargets(t *testing.T) {
	c := shared
	c.tells(t)
	c.Namespace(t, "rolls-a", nil)
	c.Namespace(t, "rolls-b", nil)
	for _, namespace := range []string{"rolls-a", "rolls-b"} {
		c.Apply(t, `{apiVersion: v1, kind: ConfigMap, metadata: {name: web, namespace: `+namespace+`, labels: {rolls: out}}}`)
	}
	c.Apply(t, `{apiVersion: v1, kind: ConfigMap, metadata: {name: other, namespace: rolls-a}}`)
	c.Apply(t, `{apiVersion: v1, kind: Secret, metadata: {name: elsewhere, namespace: rolls-b}}`)
	c.Apply(t, rollsOut)
	c.serving(t, "rolls-out", "follows")
	c.Apply(t, `{apiVersion: v1, kind: Secret, metadata: {name: key, namespace: rolls-a, labels: {rolls: out}}}`)
	annotated := func(o *unstructured.Unstructured) bool { return o != nil && o.GetAnnotations()["secret"] != "" }
	c.await(t, "v1", "ConfigMap", "rolls-a", "web", annotated)
	if annotated(c.get(t, "v1", "ConfigMap", "rolls-b", "web")) || annotated(c.get(t, "v1", "ConfigMap", "rolls-a", "other")) {
		t.Error("an object is changed that no target selects")
	}

	c.Apply(t, `{apiVersion: v1, kind: ConfigMap, metadata: {name: leader, namespace: rolls-a, labels: {follow: me}}}`)
	followed := func(o *unstructured.Unstructured) bool { return o.GetLabels()["followed"] == "leader" }
	c.await(t, "v1", "Secret", "rolls-a", "key", followed)
	if followed(c.get(t, "v1", "Secret", "rolls-b", "elsewhere")) {
		t.Error("a policy of a namespace reaches beyond it")
	}
}
