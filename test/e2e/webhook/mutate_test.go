//go:build e2e

package webhook

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kvap/kvap/test/e2e/testcluster"
)

// at is what a path finds, as text where it is text.
func at(t *testing.T, o *unstructured.Unstructured, path ...string) any {
	t.Helper()
	v, found, err := unstructured.NestedFieldNoCopy(o.Object, path...)
	if err != nil || !found {
		t.Errorf("%s: %v %v", strings.Join(path, "."), found, err)
	}
	return v
}

// item is an element of a list.
func item(v any, i int) *unstructured.Unstructured {
	list, _ := v.([]any)
	if i >= len(list) {
		return &unstructured.Unstructured{}
	}
	m, _ := list[i].(map[string]any)
	return &unstructured.Unstructured{Object: m}
}

func TestMutates(t *testing.T) {
	shared.Namespace(t, "calm", map[string]string{"hooks": "on"})
	shared.Namespace(t, "shop", nil)
	shared.start(t, "")
	shared.Apply(t, strings.TrimSpace(`
apiVersion: kvap.dev/v1alpha1
kind: ClusterPolicy
metadata: {name: spread}
spec:
  rules:
  - name: anti-affinity
    match: {any: [{resources: {kinds: [Deployment], namespaces: [shop]}}]}
    preconditions: {all: [{key: "{{ request.object.spec.template.metadata.labels.app || '' }}", operator: NotEquals, value: ""}]}
    mutate:
      patchStrategicMerge:
        spec:
          template:
            spec:
              +(affinity):
                +(podAntiAffinity):
                  +(preferredDuringSchedulingIgnoredDuringExecution):
                  - weight: 1
                    podAffinityTerm:
                      topologyKey: kubernetes.io/hostname
                      labelSelector:
                        matchExpressions: [{key: app, operator: In, values: ["{{ request.object.spec.template.metadata.labels.app }}"]}]
---
apiVersion: kvap.dev/v1alpha1
kind: ClusterPolicy
metadata: {name: drain}
spec:
  rules:
  - name: hooks
    match: {any: [{resources: {kinds: [Pod], operations: [CREATE], namespaceSelector: {matchLabels: {hooks: "on"}}}}]}
    exclude: {any: [{resources: {selector: {matchLabels: {hooks: "off"}}}}]}
    context:
    - name: seconds
      variable: {jmesPath: "request.object.metadata.labels.drain || '20'", default: "20"}
    mutate:
      patchStrategicMerge:
        spec:
          terminationGracePeriodSeconds: "{{ add(to_number(seconds), `+"`10`"+`) }}"
          containers:
          - (name): "*"
            lifecycle:
              preStop: {exec: {command: [sh, -c, "sleep {{ seconds }}"]}}
              postStart: {exec: {command: [sh, -c, "echo up"]}}
---
apiVersion: kvap.dev/v1alpha1
kind: ClusterPolicy
metadata: {name: sidecar}
spec:
  rules:
  - name: agent
    match: {any: [{resources: {kinds: [Deployment], namespaces: [shop]}}]}
    mutate:
      patchStrategicMerge:
        spec:
          template:
            metadata:
              annotations:
                (vault.example.com/inject): "enabled"
            spec:
              containers:
              - name: vault-agent
                image: vault:1
                volumeMounts: [{name: vault, mountPath: /vault}]
              volumes: [{name: vault, emptyDir: {medium: Memory}}]
`))
	t.Run("anti-affinity with a label", func(t *testing.T) {
		var terms any
		testcluster.Soon(t, "the affinity", func() bool {
			o := shared.admitted(t, deploymentOf())
			var found bool
			terms, found, _ = unstructured.NestedFieldNoCopy(o.Object, "spec", "template", "spec", "affinity", "podAntiAffinity", "preferredDuringSchedulingIgnoredDuringExecution")
			return found
		})
		expressions := at(t, item(terms, 0), "podAffinityTerm", "labelSelector", "matchExpressions")
		if values := at(t, item(expressions, 0), "values").([]any); len(values) != 1 || values[0] != "web" {
			t.Errorf("got %v", values)
		}
	})
	pod := func(labels string) string {
		return "apiVersion: v1\nkind: Pod\nmetadata: {name: a, namespace: calm, labels: {" + labels + "}}\nspec: {containers: [{name: one, image: a}, {name: two, image: b}]}"
	}
	t.Run("hooks in selected namespaces", func(t *testing.T) {
		for labels, want := range map[string]int64{"a: b": 30, `drain: "50"`: 60} {
			var o *unstructured.Unstructured
			testcluster.Soon(t, "the grace period of "+labels, func() bool {
				o = shared.admitted(t, pod(labels))
				return at(t, o, "spec", "terminationGracePeriodSeconds") == want
			})
			for i := range 2 {
				if at(t, item(at(t, o, "spec", "containers"), i), "lifecycle", "preStop", "exec", "command") == nil {
					t.Errorf("container %d has no hook", i)
				}
			}
		}
		if o := shared.admitted(t, pod(`hooks: "off"`)); item(at(t, o, "spec", "containers"), 0).Object["lifecycle"] != nil {
			t.Error("an excluded pod has hooks")
		}
	})
	t.Run("a sidecar by annotation", func(t *testing.T) {
		testcluster.Soon(t, "the sidecar", func() bool {
			o := shared.admitted(t, deploymentOf("NOTE", `vault.example.com/inject: "enabled"`))
			return len(at(t, o, "spec", "template", "spec", "containers").([]any)) == 2
		})
		o := shared.admitted(t, deploymentOf("NOTE", `vault.example.com/inject: "no"`))
		if n := len(at(t, o, "spec", "template", "spec", "containers").([]any)); n != 1 {
			t.Errorf("%d containers without the annotation", n)
		}
	})
}
