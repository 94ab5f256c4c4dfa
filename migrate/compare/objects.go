package compare

import (
	"context"
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	apischema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/kvap/kvap/internal/cluster"
)

// clusterObjects are those of a cluster, as generate rules look them up.
type clusterObjects struct{ *cluster.Connection }

// Get implements interp.Objects.
func (c clusterObjects) Get(ctx context.Context, apiVersion, kind, namespace, name string) (map[string]any, bool, error) {
	at, err := c.resource(apiVersion, kind, namespace)
	if err != nil {
		return nil, false, err
	}
	o, err := at.Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, err
	}
	return o.Object, true, nil
}

// List implements interp.Objects. Rules that copy lists name a version.
func (c clusterObjects) List(ctx context.Context, apiVersion, kind, namespace string, selector labels.Selector) ([]map[string]any, error) {
	at, err := c.resource(apiVersion, kind, namespace)
	if err != nil {
		return nil, err
	}
	list, err := at.List(ctx, metav1.ListOptions{LabelSelector: selector.String()})
	if err != nil {
		return nil, err
	}
	var out []map[string]any
	for i := range list.Items {
		list.Items[i].SetAPIVersion(apiVersion) // items of a list may leave them out
		list.Items[i].SetKind(kind)
		out = append(out, list.Items[i].Object)
	}
	return out, nil
}

func (c clusterObjects) resource(apiVersion, kind, namespace string) (dynamic.ResourceInterface, error) {
	gv, err := apischema.ParseGroupVersion(apiVersion)
	if err != nil {
		return nil, err
	}
	m, err := c.Mapper.RESTMapping(gv.WithKind(kind).GroupKind(), gv.Version)
	if apimeta.IsNoMatchError(err) {
		return nil, errors.New("the cluster has no kind " + kind + " of " + apiVersion)
	}
	if err != nil {
		return nil, err
	}
	if m.Scope.Name() == apimeta.RESTScopeNameRoot {
		namespace = ""
	}
	return c.Dynamic.Resource(m.Resource).Namespace(namespace), nil
}
