//go:build e2e

package e2e

import (
	"context"
	"os"
	"slices"
	"sync"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	apischema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/kvap/kvap/internal/e2e/attempt"
	"github.com/kvap/kvap/internal/e2e/testcluster"
)

// A cluster is the control plane that all tests share.
type cluster struct {
	*testcluster.Cluster
	second *rest.Config // the administrator of the second server
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
		shared, err = withSecond(context.Background(), c)
		return nil, err
	}))
}

// withSecond adds the API server that does not judge.
func withSecond(ctx context.Context, of *testcluster.Cluster) (c *cluster, err error) {
	c = &cluster{Cluster: of}
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

var (
	policies = admissionregistrationv1.SchemeGroupVersion.WithResource("validatingadmissionpolicies")
	bindings = admissionregistrationv1.SchemeGroupVersion.WithResource("validatingadmissionpolicybindings")
)

// store makes for real what requests start from.
func (c *cluster) store() attempt.Store { return attempt.Store{Interface: c.unjudged} }

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
