//go:build e2e

package testcluster

import (
	"context"
	"fmt"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func lease() *coordinationv1.Lease {
	return &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "kvap-controller.kvap.dev"}}
}

// Leader is who holds the controller's lease; empty where nobody does.
func Leader(t *testing.T, c client.Client) string {
	t.Helper()
	o := lease()
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(o), o); client.IgnoreNotFound(err) != nil {
		t.Fatal(err)
	}
	if o.Spec.HolderIdentity == nil {
		return ""
	}
	return *o.Spec.HolderIdentity
}

// GiveLease gives the lease to somebody, whoever holds it; empty is nobody. When the test
// ends nobody has it.
func GiveLease(t *testing.T, c client.Client, holder string) {
	t.Helper()
	give := func(ctx context.Context, holder string) {
		change := fmt.Appendf(nil, `{"spec":{"holderIdentity":%q,"leaseDurationSeconds":3600,"renewTime":%q}}`,
			holder, time.Now().UTC().Format(metav1.RFC3339Micro))
		if err := c.Patch(ctx, lease(), client.RawPatch(types.MergePatchType, change)); err != nil {
			t.Fatal(err)
		}
	}
	if holder != "" {
		t.Cleanup(func() { give(context.Background(), "") })
	}
	give(t.Context(), holder)
}
