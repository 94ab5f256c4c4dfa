//go:build e2e

package controller

import (
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kvap/kvap/api/v1alpha1"
	"github.com/kvap/kvap/controller"
)

// A second controller, with another lease and other flags, stands by: nothing is written while
// both run.
func TestSecondInstance(t *testing.T) {
	shared.control(t, controller.Options{Mode: v1alpha1.ModeEnforce})
	shared.apply(t, requires("one-instance", "owner", "Enforce"))
	shared.awaitReady(t, "ClusterPolicy", "", "one-instance")
	name := shared.ours(t)[0]
	versions := func() string {
		p, b := &admissionregistrationv1.ValidatingAdmissionPolicy{}, &admissionregistrationv1.ValidatingAdmissionPolicyBinding{}
		if err := shared.Get(t.Context(), client.ObjectKey{Name: name}, p); err != nil {
			t.Fatal(err)
		}
		if err := shared.Get(t.Context(), client.ObjectKey{Name: name}, b); err != nil {
			t.Fatal(err)
		}
		return p.ResourceVersion + " " + b.ResourceVersion
	}
	before := versions()
	shared.control(t, controller.Options{Mode: v1alpha1.ModeEnforce, Namespace: "kube-system", ExcludeNamespaces: []string{"another"}})
	for end := time.Now().Add(4 * time.Second); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		if now := versions(); now != before {
			t.Fatalf("a second controller writes: %s, before %s", now, before)
		}
	}
}
