package controlplane

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	apischema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"
)

// A CRD is a CustomResourceDefinition.
type CRD = *unstructured.Unstructured

// ReadCRDs reads a folder of definitions, one to a file.
func ReadCRDs(dir string) ([]CRD, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.yaml"))
	if err != nil {
		return nil, err
	}
	var crds []CRD
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		crd := &unstructured.Unstructured{}
		if err := yaml.Unmarshal(data, &crd.Object); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		crds = append(crds, crd)
	}
	return crds, nil
}

// StandIn is a definition that takes any object of a kind, with a status of its
// own, for where the real one is not at hand. The resource is the plural of the
// kind. More versions are served too; the kind's own is the one that is stored.
func StandIn(kind apischema.GroupVersionKind, resource string, namespaced bool, more ...string) CRD {
	scope := "Cluster"
	if namespaced {
		scope = "Namespaced"
	}
	open := map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true}
	var versions []any
	for _, version := range append([]string{kind.Version}, more...) {
		versions = append(versions, map[string]any{
			"name": version, "served": true, "storage": version == kind.Version,
			"subresources": map[string]any{"status": map[string]any{}},
			"schema":       map[string]any{"openAPIV3Schema": open},
		})
	}
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1",
		"kind":       "CustomResourceDefinition",
		"metadata":   map[string]any{"name": resource + "." + kind.Group},
		"spec": map[string]any{
			"group":    kind.Group,
			"scope":    scope,
			"names":    map[string]any{"kind": kind.Kind, "plural": resource},
			"versions": versions,
		},
	}}
}

// InstallCRDs makes the definitions, and returns when the API server serves all of
// them. One that is there already stays as it is.
func (c *ControlPlane) InstallCRDs(ctx context.Context, crds ...CRD) error {
	config := c.Config(Admin)
	config.WarningHandler = rest.NoWarnings{} // a definition may have versions that it calls deprecated
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return err
	}
	definitions := client.Resource(apischema.GroupVersionResource{
		Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions",
	})
	for _, crd := range crds {
		if _, err := definitions.Create(ctx, crd, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("%s: %w", crd.GetName(), err)
		}
	}
	discoverer, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	for _, crd := range crds {
		if err := awaitServed(ctx, client, discoverer, crd); err != nil {
			return fmt.Errorf("%s is not served: %w", crd.GetName(), err)
		}
	}
	return nil
}

// awaitServed waits until the objects of a definition can be listed and clients can discover
// it: an API server says what it serves a moment later than it serves it.
func awaitServed(ctx context.Context, client dynamic.Interface, discoverer discovery.DiscoveryInterface, crd CRD) error {
	group, _, _ := unstructured.NestedString(crd.Object, "spec", "group")
	resource, _, _ := unstructured.NestedString(crd.Object, "spec", "names", "plural")
	versions, _, _ := unstructured.NestedSlice(crd.Object, "spec", "versions")
	for _, v := range versions {
		version, _ := v.(map[string]any)
		if version["served"] != true {
			continue
		}
		name, _ := version["name"].(string)
		served := apischema.GroupVersionResource{Group: group, Version: name, Resource: resource}
		for {
			_, err := client.Resource(served).List(ctx, metav1.ListOptions{Limit: 1})
			if err == nil {
				err = discovered(discoverer, served)
			}
			if err == nil {
				break
			}
			select {
			case <-ctx.Done():
				return fmt.Errorf("%w (%w)", err, ctx.Err())
			case <-time.After(50 * time.Millisecond):
			}
		}
	}
	return nil
}

// discovered is an error where an API server does not say that it serves a resource.
func discovered(client discovery.DiscoveryInterface, served apischema.GroupVersionResource) error {
	groups, err := client.ServerGroups()
	if err != nil {
		return err
	}
	told := slices.ContainsFunc(groups.Groups, func(g metav1.APIGroup) bool {
		return slices.ContainsFunc(g.Versions, func(v metav1.GroupVersionForDiscovery) bool {
			return v.GroupVersion == served.GroupVersion().String()
		})
	})
	if !told {
		return fmt.Errorf("the API server does not tell of %s", served.GroupVersion())
	}
	resources, err := client.ServerResourcesForGroupVersion(served.GroupVersion().String())
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(resources.APIResources, func(r metav1.APIResource) bool { return r.Name == served.Resource }) {
		return fmt.Errorf("the API server does not tell of %s", served)
	}
	return nil
}
