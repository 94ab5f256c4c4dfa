package cleanup

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"

	"github.com/kvap/kvap/policy"
)

// pageSize is how many objects a page of a list has.
const pageSize = 500

// liveCluster is a cluster by way of its API server.
type liveCluster struct {
	*served
	dynamic  dynamic.Interface
	metadata metadata.Interface
}

// Policies are the cleanup policies, if the cluster knows them.
func (l *liveCluster) Policies(ctx context.Context) ([]*unstructured.Unstructured, error) {
	return l.objects(ctx, Kinds()...)
}

// Exceptions implements Cluster.
func (l *liveCluster) Exceptions(ctx context.Context) ([]*unstructured.Unstructured, error) {
	gv := schema.GroupVersion{Group: celGroup, Version: "v1"}
	return l.objects(ctx, PolicyKind{gv.WithKind("PolicyException"), []string{"v1beta1", "v1alpha1"}, "policyexceptions", true})
}

// objects are those of kinds, if the cluster knows them.
func (l *liveCluster) objects(ctx context.Context, kinds ...PolicyKind) ([]*unstructured.Unstructured, error) {
	var out []*unstructured.Unstructured
	for _, kind := range kinds {
		r, ok, err := l.newest(ctx, kind)
		if err != nil {
			return nil, err
		}
		if !ok {
			continue
		}
		// What the API server has in its cache is good enough: it is asked again soon.
		cached := metav1.ListOptions{ResourceVersion: "0"}
		if err := l.pages(ctx, r, "", true, cached, func(o *unstructured.Unstructured) error {
			out = append(out, o)
			return nil
		}); err != nil {
			return nil, fmt.Errorf("listing %s: %w", r.Resource, err)
		}
	}
	return out, nil
}

// newest is the newest version of a kind that the cluster serves.
func (l *liveCluster) newest(ctx context.Context, kind PolicyKind) (Resource, bool, error) {
	for _, version := range append([]string{kind.Version}, kind.Older...) {
		r, ok, err := l.Resource(ctx, policy.KindSelector{Group: kind.Group, Version: version, Kind: kind.Kind})
		if ok || err != nil {
			return r, ok, err
		}
	}
	return Resource{}, false, nil
}

// Each implements Cluster.
func (l *liveCluster) Each(ctx context.Context, r Resource, namespace string, whole bool, f func(*unstructured.Unstructured) error) error {
	return l.pages(ctx, r, namespace, whole, metav1.ListOptions{Limit: pageSize}, f)
}

// pages reads a list page by page.
func (l *liveCluster) pages(ctx context.Context, r Resource, namespace string, whole bool, o metav1.ListOptions, f func(*unstructured.Unstructured) error) error {
	read := l.metadataPage
	if whole {
		read = l.page
	}
	for {
		items, next, err := read(ctx, r, namespace, o)
		if err != nil {
			return err
		}
		for _, o := range items {
			if err := f(o); err != nil {
				return err
			}
		}
		if next == "" {
			return nil
		}
		o.Continue, o.ResourceVersion = next, ""
	}
}

func (l *liveCluster) page(ctx context.Context, r Resource, namespace string, o metav1.ListOptions) (items []*unstructured.Unstructured, next string, err error) {
	list, err := l.dynamic.Resource(r.GroupVersionResource).Namespace(namespace).List(ctx, o)
	if err != nil {
		return nil, "", err
	}
	for i := range list.Items {
		one := &list.Items[i]
		one.SetGroupVersionKind(r.GroupVersion().WithKind(r.Kind)) // items of a list may leave it out
		items = append(items, one)
	}
	return items, list.GetContinue(), nil
}

func (l *liveCluster) metadataPage(ctx context.Context, r Resource, namespace string, o metav1.ListOptions) (items []*unstructured.Unstructured, next string, err error) {
	list, err := l.metadata.Resource(r.GroupVersionResource).Namespace(namespace).List(ctx, o)
	if err != nil {
		return nil, "", err
	}
	for i := range list.Items {
		one, err := ofKind(r, &list.Items[i])
		if err != nil {
			return nil, "", err
		}
		items = append(items, one)
	}
	return items, list.GetContinue(), nil
}

// ofKind is the metadata of an object as the object itself.
func ofKind(r Resource, m *metav1.PartialObjectMetadata) (*unstructured.Unstructured, error) {
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(m)
	if err != nil {
		return nil, err
	}
	o := &unstructured.Unstructured{Object: fields}
	o.SetGroupVersionKind(r.GroupVersion().WithKind(r.Kind))
	return o, nil
}

// Get implements Cluster.
func (l *liveCluster) Get(ctx context.Context, r Resource, namespace, name string, whole bool) (*unstructured.Unstructured, error) {
	if whole {
		return l.dynamic.Resource(r.GroupVersionResource).Namespace(namespace).Get(ctx, name, metav1.GetOptions{})
	}
	m, err := l.metadata.Resource(r.GroupVersionResource).Namespace(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	return ofKind(r, m)
}

// Delete implements Cluster.
func (l *liveCluster) Delete(ctx context.Context, r Resource, o *unstructured.Unstructured, propagation string) error {
	return l.remove(ctx, r, o, propagation)
}

// remove deletes an object that is as it was read.
func (l *liveCluster) remove(ctx context.Context, r Resource, o metav1.Object, propagation string) error {
	uid, version := o.GetUID(), o.GetResourceVersion()
	options := metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid, ResourceVersion: &version}}
	if propagation != "" {
		p := metav1.DeletionPropagation(propagation)
		options.PropagationPolicy = &p
	}
	return l.metadata.Resource(r.GroupVersionResource).Namespace(o.GetNamespace()).Delete(ctx, o.GetName(), options)
}
