package live

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/kvap/kvap/internal/textdiff"
)

func read(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	o := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &o.Object); err != nil {
		t.Fatal(err)
	}
	return o
}

// An exception is one of the policy that it names, of its kind and in its namespace.
func TestExceptionsOfPolicies(t *testing.T) {
	cluster := read(t, "{apiVersion: kyverno.io/v1, kind: ClusterPolicy, metadata: {name: p}}")
	namespaced := read(t, "{apiVersion: kyverno.io/v1, kind: Policy, metadata: {name: p, namespace: shop}}")
	validating := read(t, "{apiVersion: policies.kyverno.io/v1, kind: ValidatingPolicy, metadata: {name: p}}")
	other := read(t, "{apiVersion: policies.kyverno.io/v1, kind: NamespacedValidatingPolicy, metadata: {name: p, namespace: shop}}")
	for exception, want := range map[string][]bool{
		"{apiVersion: kyverno.io/v2, kind: PolicyException, spec: {exceptions: [{policyName: p}]}}":                            {true, false, false, false},
		"{apiVersion: kyverno.io/v2, kind: PolicyException, spec: {exceptions: [{policyName: shop/p}]}}":                       {false, true, false, false},
		"{apiVersion: policies.kyverno.io/v1, kind: PolicyException, spec: {policyRefs: [{kind: ValidatingPolicy, name: p}]}}": {false, false, true, false},
	} {
		var got []bool
		for _, source := range []*unstructured.Unstructured{cluster, namespaced, validating, other} {
			got = append(got, isNamedBy(read(t, exception), source))
		}
		if diff := textdiff.Values(want, got); diff != "" {
			t.Errorf("%s: %s", exception, diff)
		}
	}
}

// What a policy in CEL reads by name is part of what a comparison is about.
func TestGotObjects(t *testing.T) {
	p := read(t, `apiVersion: policies.kyverno.io/v1
kind: ValidatingPolicy
metadata: {name: p}
spec:
  variables:
  - {name: c, expression: "resource.Get('v1', 'configmaps', 'shop', 'limits')"}
  validations:
  - {expression: "resource.Get(\"apps/v1\",\"deployments\", 'shop' ,'web').spec.replicas > 1 && resource.Get('v1', 'secrets', object.metadata.namespace, 's').data.a == 'b'"}`)
	want := []got{{"apps/v1", "deployments", "shop", "web"}, {"v1", "configmaps", "shop", "limits"}}
	found := gotBy(p)
	if len(found) == 2 && found[0].resource == "configmaps" {
		found[0], found[1] = found[1], found[0]
	}
	if diff := textdiff.Values(want, found); diff != "" {
		t.Error(diff)
	}
	p.SetAPIVersion("kyverno.io/v1")
	if found := gotBy(p); found != nil {
		t.Errorf("the rules of a ClusterPolicy read by other words: %v", found)
	}
}
