//go:build e2e

package e2e

import (
	"context"
	"os"
	"slices"
	"sync"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	apischema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/schema"
	"github.com/kvap/kvap/test/e2e/attempt"
	"github.com/kvap/kvap/test/e2e/testcluster"
)

// A cluster is the control plane that all tests share.
type cluster struct {
	*testcluster.Cluster
	release cel.Release
	second  *rest.Config // the administrator of the second server
	// judged goes to the API server whose admission is tested. unjudged goes to
	// another one on the same data, in which ValidatingAdmissionPolicies are off:
	// what it stores is what a test starts from.
	judged, unjudged dynamic.Interface
	converted        sync.Map // a conversion by the command line
}

// shared is made by TestMain.
var shared *cluster

func TestMain(m *testing.M) {
	os.Exit(testcluster.Run(m, testcluster.Options{}, func(c *testcluster.Cluster) (func(), error) {
		var err error
		if shared, err = withSecond(context.Background(), c); err != nil {
			return nil, err
		}
		return nil, testcluster.KeepParams(context.Background(), c.Client)
	}))
}

// withSecond adds the API server that does not judge.
func withSecond(ctx context.Context, of *testcluster.Cluster) (c *cluster, err error) {
	c = &cluster{Cluster: of}
	if c.release, err = releaseOf(c.Config); err != nil {
		return c, err
	}
	c.second = rest.CopyConfig(c.Config)
	if c.second.Host, err = c.Plane.Another(ctx, "--disable-admission-plugins=ValidatingAdmissionPolicy"); err != nil {
		return c, err
	}
	if c.judged, err = dynamic.NewForConfig(c.Config); err != nil {
		return c, err
	}
	c.unjudged, err = dynamic.NewForConfig(c.second)
	return c, err
}

// releaseOf is the release that an API server is of.
func releaseOf(config *rest.Config) (cel.Release, error) {
	client, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return 0, err
	}
	says, err := client.ServerVersion()
	if err != nil {
		return 0, err
	}
	return cel.ParseRelease(says.GitVersion)
}

// schemas are the types of the release.
func (c *cluster) schemas(t *testing.T) *schema.Set {
	t.Helper()
	set, err := schema.Builtin(c.release.String())
	if err != nil {
		t.Fatal(err)
	}
	return set
}

// needMutators skips a test of MutatingAdmissionPolicies where the API server, which is of
// an older release, serves none.
func (c *cluster) needMutators(t *testing.T) {
	t.Helper()
	_, err := c.judged.Resource(mutators).List(t.Context(), metav1.ListOptions{Limit: 1})
	switch {
	case apierrors.IsNotFound(err) && c.release < 36:
		t.Skipf("Kubernetes %s serves no MutatingAdmissionPolicies", c.release)
	case err != nil:
		t.Fatal(err)
	}
}

var (
	policies = admissionregistrationv1.SchemeGroupVersion.WithResource("validatingadmissionpolicies")
	bindings = admissionregistrationv1.SchemeGroupVersion.WithResource("validatingadmissionpolicybindings")
	mutators = admissionregistrationv1.SchemeGroupVersion.WithResource("mutatingadmissionpolicies")
)

// store makes for real what requests start from.
func (c *cluster) store() attempt.Store { return attempt.Store{Interface: c.unjudged} }

// ofKind picks the objects of a kind.
func ofKind(objects []*unstructured.Unstructured, kind string) []*unstructured.Unstructured {
	return slices.DeleteFunc(slices.Clone(objects), func(o *unstructured.Unstructured) bool { return o.GetKind() != kind })
}

// resourceOf is where the objects that judge are made.
func resourceOf(o *unstructured.Unstructured) (apischema.GroupVersionResource, bool) {
	switch o.GetKind() {
	case "ValidatingAdmissionPolicy":
		return policies, true
	case "ValidatingAdmissionPolicyBinding":
		return bindings, true
	}
	return apischema.GroupVersionResource{}, false
}
