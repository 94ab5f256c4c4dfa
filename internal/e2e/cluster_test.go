//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	apischema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/kvap/kvap/internal/controlplane"
)

// A cluster is the control plane that all tests share.
type cluster struct {
	admin, second *rest.Config // the administrator of each server
	// judged goes to the API server whose admission is tested. unjudged goes to
	// another one on the same data, in which ValidatingAdmissionPolicies are off:
	// what it stores is what a test starts from.
	judged, unjudged dynamic.Interface

	plane *controlplane.ControlPlane
	kvap  string // the program
}

// shared is made by TestMain.
var shared *cluster

func TestMain(m *testing.M) {
	os.Exit(run(m))
}

func run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "kvap-e2e-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	shared, err = newCluster(context.Background(), dir)
	if shared != nil && shared.plane != nil {
		defer shared.plane.Stop()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return m.Run()
}

func newCluster(ctx context.Context, dir string) (c *cluster, err error) {
	c = &cluster{kvap: filepath.Join(dir, "kvap")}
	build := exec.CommandContext(ctx, "go", "build", "-o", c.kvap, "../../cmd/kvap")
	if text, err := build.CombinedOutput(); err != nil {
		return c, fmt.Errorf("building kvap: %w\n%s", err, text)
	}
	if c.plane, err = controlplane.Start(ctx, controlplane.Options{}); err != nil {
		return c, err
	}
	c.admin = c.plane.Config(controlplane.Admin)
	c.admin.WarningHandler = rest.NoWarnings{} // fixtures use what is deprecated
	if c.judged, err = dynamic.NewForConfig(c.admin); err != nil {
		return c, err
	}
	c.second = rest.CopyConfig(c.admin)
	if c.second.Host, err = c.plane.Another(ctx, "--disable-admission-plugins=ValidatingAdmissionPolicy"); err != nil {
		return c, err
	}
	if c.unjudged, err = dynamic.NewForConfig(c.second); err != nil {
		return c, err
	}
	return c, c.installParams(ctx)
}

// installParams defines kvap's own kind of params.
func (c *cluster) installParams(ctx context.Context) error {
	crds, err := controlplane.ReadCRDs(filepath.Join("..", "..", "deploy", "crds"))
	if err != nil {
		return err
	}
	return c.plane.InstallCRDs(ctx, crds...)
}

var (
	policies   = admissionregistrationv1.SchemeGroupVersion.WithResource("validatingadmissionpolicies")
	bindings   = admissionregistrationv1.SchemeGroupVersion.WithResource("validatingadmissionpolicybindings")
	namespaces = apischema.GroupVersionResource{Version: "v1", Resource: "namespaces"}
	configMaps = apischema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
)

func dryRun() []string { return []string{metav1.DryRunAll} }

// ofKind picks the objects of a kind.
func ofKind(objects []*unstructured.Unstructured, kind string) []*unstructured.Unstructured {
	return slices.DeleteFunc(slices.Clone(objects), func(o *unstructured.Unstructured) bool { return o.GetKind() != kind })
}

// resourceOf is where the objects that kvap writes are made.
func resourceOf(o *unstructured.Unstructured) (apischema.GroupVersionResource, bool) {
	switch o.GetKind() {
	case "ValidatingAdmissionPolicy":
		return policies, true
	case "ValidatingAdmissionPolicyBinding":
		return bindings, true
	}
	return apischema.GroupVersionResource{}, false
}

// soon asks until the answer is yes. A machine that is busy may take long.
func soon(t *testing.T, what string, ask func() bool) {
	t.Helper()
	for deadline := time.Now().Add(2 * time.Minute); !ask(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not in time: %s", what)
		}
	}
}
