package cleanup

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kvap/kvap/api/v1alpha1"
	"github.com/kvap/kvap/policy"
)

// A Resource is a kind of objects that the cluster serves.
type Resource struct {
	schema.GroupVersionResource
	Kind       string
	Namespaced bool
	Verbs      []string
}

// A Cluster is what a run reads and deletes. Errors are the API server's.
type Cluster interface {
	// Policies are the objects of all kinds, in any order.
	Policies(ctx context.Context) ([]*unstructured.Unstructured, error)
	// Exceptions are those from policies in CEL, in any order.
	Exceptions(ctx context.Context) ([]*unstructured.Unstructured, error)
	// Served are all kinds of objects, in the order in which the cluster names them.
	Served(ctx context.Context) ([]Resource, error)
	// Resource is what a kind means; served is false where the cluster has no such
	// kind. A wildcard means none.
	Resource(ctx context.Context, kind policy.KindSelector) (r Resource, served bool, err error)
	// Each calls a function with the objects of a resource: in a namespace, or in all
	// if it is empty. Where they are not wanted whole they have their metadata alone.
	// An error of the function ends it.
	Each(ctx context.Context, r Resource, namespace string, whole bool, f func(*unstructured.Unstructured) error) error
	// Get finds an object.
	Get(ctx context.Context, r Resource, namespace, name string, whole bool) (*unstructured.Unstructured, error)
	// Delete deletes an object that is as it was read; it is a conflict if it is not.
	Delete(ctx context.Context, r Resource, o *unstructured.Unstructured, propagation string) error
}

// A StatusStore has what is said of policies.
type StatusStore interface {
	// List are the entries that are there, by name.
	List(ctx context.Context) (map[string]*v1alpha1.PolicyTranslation, error)
	Write(ctx context.Context, t *v1alpha1.PolicyTranslation) error
	Remove(ctx context.Context, name string) error
}

// Events tells of what happened to a policy.
type Events func(about v1alpha1.PolicyReference, warning bool, reason, note string)
