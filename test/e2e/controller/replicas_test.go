//go:build e2e

package controller

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kvap/kvap/test/e2e/testcluster"
)

// Of two replicas one writes. When it is killed, the other takes over, and nothing is
// admitted meanwhile that the policy denies, while it changes.
func TestLeaderChange(t *testing.T) {
	t.Setenv(withLease, "yes")
	first := shared.spawn(t, "0")
	t.Cleanup(func() { _ = first.Process.Kill() })
	shared.apply(t, moved("led", 0))
	shared.awaitReady(t, "ClusterPolicy", "", "led")
	leader := testcluster.Leader(t, shared.Client)
	second := shared.spawn(t, "0")
	t.Cleanup(func() {
		_ = second.Process.Kill()
		_ = second.Wait()
	})
	s := shared.ask(t)
	shared.apply(t, moved("led", 1))
	shared.awaitReady(t, "ClusterPolicy", "", "led")
	if now := testcluster.Leader(t, shared.Client); now != leader {
		t.Fatalf("%s leads, and not %s", now, leader)
	}
	shared.apply(t, moved("led", 2))
	time.Sleep(200 * time.Millisecond) // it is at work on that
	_ = first.Process.Kill()
	_ = first.Wait()
	deadline := time.Now().Add(2 * time.Minute) // the lease ends first
	for testcluster.Leader(t, shared.Client) == leader {
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
