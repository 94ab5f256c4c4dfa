//go:build e2e

package deploy

import (
	"os/exec"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kvap/kvap/test/controlplane"
	"github.com/kvap/kvap/test/e2e/testcluster"
)

// When what was installed is deleted, nothing asks a webhook that is gone.
func TestUninstalled(t *testing.T) {
	if err := shared.Plane.InstallCRDs(t.Context(), hookedKinds()...); err != nil {
		t.Fatal(err)
	}
	c := hooked(t)
	r := c.runAsAccount(t)
	c.apply(t, served)
	asked := func() error {
		o := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "asked", Namespace: "default"}}
		return c.Create(t.Context(), o, client.DryRunAll)
	}
	testcluster.Soon(t, "the webhook is asked", func() bool {
		err := asked()
		return err != nil && strings.Contains(err.Error(), "denied the request")
	})
	testcluster.Soon(t, "kvap uninstall says what ends", func() bool {
		text, err := exec.CommandContext(t.Context(), c.Kvap, "uninstall", "--kubeconfig", c.Plane.Kubeconfig(controlplane.Admin)).CombinedOutput()
		return err == nil && strings.Contains(string(text), "Nobody judges by its rules") && strings.Contains(string(text), "served.clusterpolicies.kvap.dev")
	})
	r.stop(t)
	if err := asked(); err == nil || !strings.Contains(err.Error(), "failed calling webhook") {
		t.Errorf("while the controller is away: %v", err)
	}
	for _, o := range c.installed {
		if err := c.Delete(t.Context(), o.DeepCopy()); err != nil {
			t.Fatalf("%s %s: %v", o.GetKind(), o.GetName(), err)
		}
	}
	for _, kind := range []string{"ValidatingWebhookConfiguration", "MutatingWebhookConfiguration"} {
		testcluster.Soon(t, kind+"s are gone", func() bool { return len(c.list(t, "admissionregistration.k8s.io/v1", kind)) == 0 })
	}
	testcluster.Soon(t, "requests are admitted", func() bool { return asked() == nil })
}
