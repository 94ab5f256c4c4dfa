//go:build e2e

package background

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kvap/kvap/test/e2e/testcluster"
)

const rollouts = `
apiVersion: kvap.dev/v1alpha1
kind: ClusterPolicy
metadata: {name: rollouts}
spec:
  rules:
  - name: level
    match: {any: [{resources: {kinds: [ConfigMap], names: [rollout]}}]}
    mutate:
      mutateExistingOnPolicyUpdate: true
      targets: [{apiVersion: v1, kind: ServiceAccount, namespace: "{{ request.object.metadata.namespace }}", name: "worker-*"}]
      patchStrategicMerge: {metadata: {annotations: {level: "{{ request.object.data.level }}"}}}
`

// Objects that are there follow a trigger, also one that was there before the policy,
// and no others do.
func TestMutateExisting(t *testing.T) {
	c := shared
	c.tells(t)
	c.Namespace(t, "rollout", nil)
	for _, name := range []string{"worker-a", "worker-b", "other"} {
		c.Apply(t, "{apiVersion: v1, kind: ServiceAccount, metadata: {name: "+name+", namespace: rollout}}")
	}
	c.Apply(t, "{apiVersion: v1, kind: ServiceAccount, metadata: {name: worker-c, namespace: default}}")
	c.Apply(t, "{apiVersion: v1, kind: ConfigMap, metadata: {name: rollout, namespace: rollout}, data: {level: low}}")
	c.Apply(t, rollouts)
	levels := func(want string) {
		t.Helper()
		for _, name := range []string{"worker-a", "worker-b"} {
			c.await(t, "v1", "ServiceAccount", "rollout", name, func(o *unstructured.Unstructured) bool {
				return o != nil && o.GetAnnotations()["level"] == want
			})
		}
	}
	levels("low") // by the policy itself
	c.serving(t, "rollouts")
	patch := client.RawPatch("application/merge-patch+json", []byte(`{"data":{"level":"high"}}`))
	if err := c.Patch(t.Context(), c.get(t, "v1", "ConfigMap", "rollout", "rollout"), patch); err != nil {
		t.Fatal(err)
	}
	levels("high") // by a request
	testcluster.Soon(t, "the requests are done", func() bool { return c.pending(t) == 0 })
	for namespace, name := range map[string]string{"rollout": "other", "default": "worker-c"} {
		if o := c.get(t, "v1", "ServiceAccount", namespace, name); o == nil || o.GetAnnotations()["level"] != "" {
			t.Errorf("%s/%s was changed: %v", namespace, name, o)
		}
	}
	version := c.get(t, "v1", "ServiceAccount", "rollout", "worker-a").GetResourceVersion()
	if err := c.Patch(t.Context(), c.get(t, "v1", "ConfigMap", "rollout", "rollout"),
		client.RawPatch("application/merge-patch+json", []byte(`{"data":{"other":"x"}}`))); err != nil {
		t.Fatal(err)
	}
	testcluster.Soon(t, "the requests are done", func() bool { return c.pending(t) == 0 })
	if now := c.get(t, "v1", "ServiceAccount", "rollout", "worker-a").GetResourceVersion(); now != version {
		t.Error("what was as it should be was written again")
	}
}
