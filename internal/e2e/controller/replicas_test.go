//go:build e2e

package controller

import (
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Of two replicas one writes. When it is killed, the other takes over, and nothing is
// admitted meanwhile that the policy denies, while it changes.
func TestLeaderChange(t *testing.T) {
	t.Setenv(withLease, "yes")
	first := shared.spawn(t, "0")
	t.Cleanup(func() { _ = first.Process.Kill() })
	shared.apply(t, moved("led", 0))
	shared.awaitReady(t, "ClusterPolicy", "", "led")
	leader := shared.leader(t)
	second := shared.spawn(t, "0")
	t.Cleanup(func() {
		_ = second.Process.Kill()
		_ = second.Wait()
	})
	s := shared.ask(t)
	shared.apply(t, moved("led", 1))
	shared.awaitReady(t, "ClusterPolicy", "", "led")
	if now := shared.leader(t); now != leader {
		t.Fatalf("%s leads, and not %s", now, leader)
	}
	shared.apply(t, moved("led", 2))
	time.Sleep(200 * time.Millisecond) // it is at work on that
	_ = first.Process.Kill()
	_ = first.Wait()
	deadline := time.Now().Add(2 * time.Minute) // the lease ends first
	for shared.leader(t) == leader {
		if time.Now().After(deadline) {
			t.Fatal("nobody takes over")
		}
		time.Sleep(100 * time.Millisecond)
	}
	shared.awaitReady(t, "ClusterPolicy", "", "led")
	shared.apply(t, moved("led", 3))
	shared.awaitReady(t, "ClusterPolicy", "", "led")
	s.end(t)
	led := &unstructured.Unstructured{}
	led.SetAPIVersion("kyverno.io/v1")
	led.SetKind("ClusterPolicy")
	led.SetName("led")
	shared.remove(t, led)
	shared.awaitNone(t) // while there is somebody to remove it
}

// leader is who holds the lease.
func (c *cluster) leader(t *testing.T) string {
	t.Helper()
	lease := &coordinationv1.Lease{}
	if err := c.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "kvap-controller.kvap.dev"}, lease); client.IgnoreNotFound(err) != nil {
		t.Fatal(err)
	}
	if lease.Spec.HolderIdentity == nil {
		return ""
	}
	return *lease.Spec.HolderIdentity
}
