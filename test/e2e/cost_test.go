//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/check"
	"github.com/kvap/kvap/schema"
)

// dear are policies on Pods with a label, one whose cost check warns of and one that it does
// not, although 100 containers are held to 100 entries of a ConfigMap.
const dear = `apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: e2e-cost-warned}
spec:
  matchConstraints:
    objectSelector: {matchLabels: {e2e-cost: warned}}
    resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [pods]}]
  validations:
    - expression: object.spec.?volumes.orValue([]).all(v, object.spec.volumes.all(w, w.name != v.name + '-copy'))
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: e2e-cost-warned}
spec: {policyName: e2e-cost-warned, validationActions: [Deny]}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: e2e-cost-quiet}
spec:
  paramKind: {apiVersion: v1, kind: ConfigMap}
  matchConstraints:
    objectSelector: {matchLabels: {e2e-cost: quiet}}
    resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [pods]}]
  variables:
    - {name: registries, expression: "params.data.registries.split(',')"}
  validations:
    - expression: object.spec.containers.all(c, variables.registries.exists(r, c.image.startsWith(r + '/')))
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: e2e-cost-quiet}
spec:
  policyName: e2e-cost-quiet
  paramRef: {name: e2e-cost, namespace: default, parameterNotFoundAction: Deny}
  validationActions: [Deny]
`

// What check warns of is refused by an API server for its cost, above the size that the warning
// names, and admitted up to it. What it does not warn of is admitted.
func TestCost(t *testing.T) {
	types, err := schema.Builtin(release(t))
	if err != nil {
		t.Fatal(err)
	}
	written, found := check.Written("dear.yaml", []byte(dear))
	if found.HasErrors() {
		t.Fatal(found)
	}
	of := map[string]check.Cost{}
	results := check.Objects(written, check.Options{Schemas: map[cel.Release]*schema.Set{36: types}, Sizes: check.SizeOf(map[string]int{"name": 63, "volumes": 150})})
	for _, r := range results {
		for _, c := range r.Cost {
			if c.Field == "spec.validations[0].expression" {
				of[r.Object.Name()] = c
			}
		}
	}
	warned, quiet := of["e2e-cost-warned"], of["e2e-cost-quiet"]
	if warned.Driver != "volumes" || quiet.Driver != "" {
		t.Fatalf("%+v %+v", warned, quiet)
	}
	var registries []string
	for i := range 100 {
		registries = append(registries, fmt.Sprintf("registry-%03d.teams.example.com", i))
	}
	objects := []*unstructured.Unstructured{{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "e2e-cost", "namespace": "default"},
		"data": map[string]any{"registries": strings.Join(registries, ",")},
	}}}
	for document := range strings.SplitSeq(dear, "---\n") {
		u := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(document), &u.Object); err != nil {
			t.Fatal(err)
		}
		objects = append(objects, u)
	}
	for _, u := range objects {
		if err := shared.Create(t.Context(), u); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = shared.Delete(context.Background(), u) })
	}
	create := func(u *unstructured.Unstructured) error {
		return shared.Create(t.Context(), u.DeepCopy(), client.DryRunAll)
	}
	foreign := large("quiet", 1, 0, "elsewhere.example.org")
	err = wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, time.Minute, true, func(context.Context) (bool, error) {
		return create(large("warned", 1, 4*warned.Safe, "a")) != nil && create(foreign) != nil, nil
	})
	if err != nil {
		t.Fatal("the policies do not count:", err)
	}
	if err := create(large("warned", 1, warned.Safe, "a")); err != nil {
		t.Errorf("%d volumes are safe: %v", warned.Safe, err)
	}
	if err := create(large("warned", 1, warned.Safe+warned.Safe/20, "a")); !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "cost") {
		t.Errorf("%d volumes are more than is safe: %v", warned.Safe+warned.Safe/20, err)
	}
	if err := create(large("quiet", 100, 0, registries[99])); err != nil {
		t.Errorf("100 containers against 100 registries: %v", err)
	}
}

// large is a Pod with so many containers and volumes, whose names are as long as may be.
func large(label string, containers, volumes int, registry string) *unstructured.Unstructured {
	name := func(i int) string { return fmt.Sprintf("%s-%05d", strings.Repeat("a", 57), i) }
	spec := map[string]any{}
	var list []any
	for i := range containers {
		list = append(list, map[string]any{"name": name(i), "image": registry + "/" + strings.Repeat("team/", 20) + "image:1"})
	}
	spec["containers"], list = list, nil
	for i := range volumes {
		list = append(list, map[string]any{"name": name(i), "emptyDir": map[string]any{}})
	}
	if list != nil {
		spec["volumes"] = list
	}
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Pod", "spec": spec,
		"metadata": map[string]any{"name": "e2e-cost", "namespace": "default", "labels": map[string]any{"e2e-cost": label}},
	}}
}
