//go:build e2e

package deploy

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kvap/kvap/test/e2e/testcluster"
)

// frozen denies every change of every object.
const frozen = `
apiVersion: kvap.dev/v1alpha1
kind: ClusterPolicy
metadata: {name: frozen}
spec:
  validationFailureAction: Enforce
  rules:
    - name: no-updates
      match: {any: [{resources: {kinds: ["*"], operations: [UPDATE]}}]}
      validate: {message: Nothing may change., deny: {}}
`

// leaseLasts is longer than a leader keeps on without renewing its lease.
const leaseLasts = 20 * time.Second

// A policy that denies every change does not keep the controller from taking it back.
func TestFrozen(t *testing.T) {
	shared.runAsAccount(t)
	o := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "thaws", Namespace: "default"}}
	if err := shared.Create(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = shared.Delete(context.Background(), o) })
	change := func() error {
		o.Data = map[string]string{"n": time.Now().String()}
		return shared.Update(t.Context(), o)
	}
	shared.apply(t, frozen)
	testcluster.Soon(t, "nothing may change", func() bool { return change() != nil })
	for until := time.Now().Add(leaseLasts); time.Now().Before(until); time.Sleep(time.Second) {
		if change() == nil {
			t.Fatal("a change was admitted")
		}
	}
	shared.remove(t, frozen)
	testcluster.Soon(t, "all may change", func() bool { return change() == nil })
}
