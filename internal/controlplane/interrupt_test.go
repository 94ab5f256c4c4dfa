//go:build e2e

package controlplane

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

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
	}
	for range watch.ResultChan() { // it ends, as its server did
	}
	if err := c.Settle(t.Context()); err != nil {
		t.Errorf("policies are not taken up: %v", err)
	}
}
