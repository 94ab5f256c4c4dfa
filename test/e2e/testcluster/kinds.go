//go:build e2e

package testcluster

import (
	"context"
	"slices"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/discovery"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kvap/kvap/deploy/crds"
)

// Define makes what is missing of kvap's definitions.
func (c *Cluster) Define(t *testing.T) {
	t.Helper()
	all, err := crds.All()
	if err == nil {
		err = c.Plane.InstallCRDs(context.Background(), all...)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// Undefine takes away kvap's own kinds of policies, which the chart may leave out, until the
// test ends.
func (c *Cluster) Undefine(t *testing.T) {
	t.Helper()
	t.Cleanup(func() { c.Define(t) })
	for _, name := range []string{"clusterpolicies.kvap.dev", "policies.kvap.dev", "validatingpolicies.kvap.dev", "namespacedvalidatingpolicies.kvap.dev"} {
		crd := &unstructured.Unstructured{}
		crd.SetAPIVersion("apiextensions.k8s.io/v1")
		crd.SetKind("CustomResourceDefinition")
		crd.SetName(name)
		if err := c.Delete(t.Context(), crd); err != nil {
			t.Fatal(err)
		}
		Soon(t, name+" is gone", func() bool {
			return apierrors.IsNotFound(c.Get(t.Context(), client.ObjectKeyFromObject(crd), crd))
		})
	}
	kinds := discovery.NewDiscoveryClientForConfigOrDie(c.Config)
	Soon(t, "the kinds are not served", func() bool {
		list, err := kinds.ServerResourcesForGroupVersion("kvap.dev/v1alpha1")
		return err == nil && !slices.ContainsFunc(list.APIResources, func(r metav1.APIResource) bool {
			return slices.Contains([]string{"clusterpolicies", "policies", "validatingpolicies", "namespacedvalidatingpolicies"}, r.Name)
		})
	})
}
