package suite

import (
	"testing"

	"github.com/kvap/kvap/internal/textdiff"
)

// A DeletingPolicy passes on what it deletes and fails on what it matches and keeps; it is
// asked with the objects of the cluster, the labels of namespaces and the exceptions.
func TestDeletingRows(t *testing.T) {
	files := map[string]string{
		"kyverno-test.yaml": `{policies: [policy.yaml], resources: [pods.yaml], clusterResources: [cluster.yaml], exceptions: [exception.yaml],
  values: {namespaceSelector: [{name: shop, labels: {tier: dev}}]}, results: [
  {policy: old, isDeletingPolicy: true, kind: Pod, resources: [old], result: pass},
  {policy: old, isDeletingPolicy: true, kind: Pod, resources: [new], result: fail},
  {policy: old, isDeletingPolicy: true, kind: Pod, resources: [kept], result: fail},
  {policy: old, isDeletingPolicy: true, kind: Pod, resources: [bare], result: error},
  {policy: old, isDeletingPolicy: true, kind: Service, resources: [s], result: fail}]}`,
		"policy.yaml": `{apiVersion: policies.kyverno.io/v1, kind: DeletingPolicy, metadata: {name: old}, spec: {schedule: "0 1 * * *",
  matchConstraints: {namespaceSelector: {matchLabels: {tier: dev}}, resourceRules: [{apiGroups: [""], apiVersions: [v1], resources: [pods]}]},
  conditions: [{name: a, expression: "object.metadata.labels.age == resource.Get('v1', 'configmaps', 'shop', 'c').data.age"}]}}`,
		"exception.yaml": `{apiVersion: policies.kyverno.io/v1, kind: PolicyException, metadata: {name: e, namespace: shop}, spec: {policyRefs: [{name: old, kind: DeletingPolicy}],
  matchConditions: [{name: kept, expression: "object.metadata.name == 'kept'"}]}}`,
		"cluster.yaml": `{apiVersion: cli.kyverno.io/v1alpha1, kind: ClusterResource, spec: {resources: [{apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: shop}, data: {age: old}}]}}`,
		"pods.yaml": "{apiVersion: v1, kind: Pod, metadata: {name: old, namespace: shop, labels: {age: old}}}\n---\n{apiVersion: v1, kind: Pod, metadata: {name: new, namespace: shop, labels: {age: new}}}\n---\n" +
			"{apiVersion: v1, kind: Pod, metadata: {name: kept, namespace: shop, labels: {age: old}}}\n---\n{apiVersion: v1, kind: Pod, metadata: {name: bare, namespace: shop}}\n---\n{apiVersion: v1, kind: Service, metadata: {name: s, namespace: shop}}",
	}
	want := ` | Pod/shop/old | pass | pass | Ok (on a schedule)
 | Pod/shop/new | fail | pass | Ok (on a schedule)
 | Pod/shop/kept | fail | pass | Ok (on a schedule)
 | Pod/shop/bare | error | pass | Ok (on a schedule)
 | Service/shop/s | fail | excluded | no rule looks at the resource`
	if d := textdiff.Values(want, ran(t, folder(t, files))); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}
