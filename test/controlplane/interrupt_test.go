//go:build e2e

package controlplane

import (
	"errors"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
)

const (
	noConfigMaps = `
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: no-config-maps}
spec:
  matchConstraints:
    resourceRules: [{apiGroups: [""], apiVersions: [v1], resources: [configmaps], operations: [CREATE]}]
  validations: [{expression: "false", message: none of them}]
`
	noConfigMapsBinding = `
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: no-config-maps}
spec: {policyName: no-config-maps, validationActions: [Deny]}
`
)

// checked tells whether kube-controller-manager, whose work it is, has checked the types of a policy.
func checked(t *testing.T, client dynamic.Interface, name string) error {
	policy, err := client.Resource(admission("validatingadmissionpolicies")).Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	if _, found, _ := unstructured.NestedInt64(policy.Object, "status", "observedGeneration"); !found {
		return errors.New("types are not checked yet")
	}
	return nil
}

// An API server that goes away comes back with what it had: clients that were there
// before go on, watches included, and policies are in force from its first answer on.
func TestInterrupt(t *testing.T) {
	c := begin(t, Options{})
	admin := c.as(t, Admin)
	made := admin.Resource(configMaps).Namespace("default")
	before := object(t, "{apiVersion: v1, kind: ConfigMap, metadata: {name: before}}")
	if _, err := made.Create(t.Context(), before, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	watch, err := made.Watch(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer watch.Stop()
	for _, o := range []string{noConfigMaps, noConfigMapsBinding} { // what is in force when the server comes back
		u := object(t, o)
		if _, err := admin.Resource(admission(pluralOf(u))).Create(t.Context(), u, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.Settle(t.Context()); err != nil {
		t.Fatal(err)
	}
	// kube-controller-manager ends by itself where nobody answers in its first ten seconds.
	if err := c.await(t.Context(), controllerManager, func() error { return checked(t, admin, "no-config-maps") }); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := c.Interrupt(); err != nil {
			t.Fatal(err)
		}
		if _, err := made.Get(t.Context(), "before", metav1.GetOptions{}); err == nil {
			t.Error("an API server that was ended answers")
		}
		if err := c.Resume(t.Context()); err != nil {
			t.Fatal(err)
		}
		if _, err := made.Get(t.Context(), "before", metav1.GetOptions{}); err != nil {
			t.Errorf("what was there before: %v", err)
		}
		after := object(t, "{apiVersion: v1, kind: ConfigMap, metadata: {name: after}}")
		if _, err := made.Create(t.Context(), after, metav1.CreateOptions{}); !denied(err) {
			t.Errorf("what policies deny: %v", err)
		}
	}
	for range watch.ResultChan() { // it ends, as its server did
	}
	if err := c.Settle(t.Context()); err != nil {
		t.Errorf("policies are not taken up: %v", err)
	}
}
