//go:build e2e

package migrate

import (
	"strings"
	"testing"
)

// Without files, plan reads the policies of the cluster, and says which of its objects
// violate them.
func TestPlanOfCluster(t *testing.T) {
	t.Cleanup(func() { shared.clean(t) })
	shared.apply(t, `apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: planned}
spec:
  validationFailureAction: Audit
  rules:
    - name: team
      match: {any: [{resources: {kinds: [ConfigMap], namespaces: [shop], names: ["planned-*"]}}]}
      validate: {message: no team, pattern: {metadata: {labels: {team: "?*"}}}}
`)
	shared.Apply(t, `apiVersion: v1
kind: ConfigMap
metadata: {name: planned-bad, namespace: shop}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: planned-good, namespace: shop, labels: {team: a}}`)
	out := shared.migrate(t, 0, "plan")
	for _, want := range []string{"planned / team: 1 object violates it: ConfigMap shop/planned-bad\n", "\nconfigmaps "} {
		if !strings.Contains(out, want) {
			t.Errorf("the plan lacks %q:\n%s", want, out)
		}
	}
	page := shared.migrate(t, 0, "plan", "-o", "html")
	if !strings.Contains(page, "<td>planned</td><td>team</td><td>1 object violates it: ConfigMap shop/planned-bad</td>") {
		t.Error("the page does not tell of the object that violates the policy")
	}
}

// A cleanup policy that only Kyverno runs keeps Kyverno.
func TestFinishCountsCleanups(t *testing.T) {
	shared.Apply(t, `apiVersion: kyverno.io/v2
kind: ClusterCleanupPolicy
metadata: {name: nightly}
spec:
  schedule: "0 3 * * *"
  match: {any: [{resources: {kinds: [ConfigMap], names: ["tmp-*"]}}]}`)
	out := shared.migrate(t, 1, "finish")
	for _, want := range []string{"nightly", "only Kyverno deletes by it", "Have kvap run the cleanup policies", "stays, with its objects"} {
		if !strings.Contains(out, want) {
			t.Errorf("finish lacks %q:\n%s", want, out)
		}
	}
}
