package interp

import (
	"context"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/kvap/kvap/interp/internal/wildcard"
)

// ObjectReader finds objects of a cluster by their kind. Rules that change or copy
// existing objects ask it; those that judge a request never do.
type ObjectReader interface {
	// Get finds one object. The namespace is empty for kinds without.
	Get(ctx context.Context, apiVersion, kind, namespace, name string) (object map[string]any, found bool, err error)
	// List finds the objects of a kind that a selector selects: in a namespace, or in
	// all if it is empty. The version may be a pattern, as in apps/* or *.
	List(ctx context.Context, apiVersion, kind, namespace string, selector labels.Selector) ([]map[string]any, error)
	// Namespaced tells whether the objects of a kind are in namespaces. Of a kind that
	// nobody knows it says that they are.
	Namespaced(ctx context.Context, apiVersion, kind string) (bool, error)
}

// Get finds an object among those of the world.
func (o *Offline) Get(_ context.Context, apiVersion, kind, namespace, name string) (map[string]any, bool, error) {
	object, err := o.object(apiVersion, kind, namespace, name)
	return object, err == nil, nil
}

// Namespaced is what Unscoped says.
func (o *Offline) Namespaced(_ context.Context, apiVersion, kind string) (bool, error) {
	return o.Unscoped == nil || !o.Unscoped(apiVersion, kind), nil
}

// List finds objects among those of the world.
func (o *Offline) List(_ context.Context, apiVersion, kind, namespace string, selector labels.Selector) (out []map[string]any, err error) {
	for _, object := range o.Objects {
		if wildcard.Match(apiVersion, digText(object, "apiVersion")) && object["kind"] == kind &&
			(namespace == "" || metaText(object, "namespace") == namespace) &&
			selector.Matches(labels.Set(metaMap(object, "labels"))) {
			out = append(out, object)
		}
	}
	return out, nil
}
