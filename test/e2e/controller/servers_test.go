//go:build e2e

package controller

import (
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kvap/kvap/test/controlplane"
)

// Where there are several API servers, a policy is in force when all of them judge by
// it.
func TestSeveralServers(t *testing.T) {
	other := shared.another(t)
	options := enforcing()
	options.Servers = []*rest.Config{shared.plane.Config(controlplane.Admin), other.config}
	shared.control(t, options)
	for _, label := range []string{"owner", "team", "cost"} {
		shared.apply(t, requires("everywhere", label, "Enforce"))
		shared.awaitReady(t, "ClusterPolicy", "", "everywhere")
		for i, c := range []client.Client{shared, other} {
			if err := c.Create(t.Context(), configMap("probe", nil), client.DryRunAll); !apierrors.IsInvalid(err) {
				t.Errorf("%s on server %d: %v", label, i, err)
			}
		}
	}
}
