package live

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	apischema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/kvap/kvap/compile"
	"github.com/kvap/kvap/internal/cluster"
	"github.com/kvap/kvap/internal/judge"
	"github.com/kvap/kvap/policy"
)

// exceptions reads the exceptions of a cluster; none where they may not be read.
func exceptions(ctx context.Context, c *cluster.Connection) ([]unstructured.Unstructured, error) {
	for _, kind := range cluster.SourceKinds() {
		if kind[1] != "PolicyException" {
			continue
		}
		resource, ok := c.Serves(kind[0], kind[1], kind[2:]...)
		if !ok {
			return nil, nil
		}
		items, _, err := c.List(ctx, resource)
		if apierrors.IsForbidden(err) || apierrors.IsNotFound(err) {
			return nil, nil
		}
		return items, err
	}
	return nil, nil
}

// Around is what decides, beside a policy itself, what it says: the exceptions that
// name it, and the objects that its rules read, where their names are written out.
func Around(ctx context.Context, c *cluster.Connection, source *unstructured.Unstructured, exceptions []unstructured.Unstructured) ([]map[string]any, error) {
	var out []map[string]any
	for i := range exceptions {
		if names(&exceptions[i], source) {
			out = append(out, exceptions[i].Object)
		}
	}
	for _, one := range lookupsOf(source) {
		read, err := lookup(ctx, c, one)
		if err != nil {
			return nil, err
		}
		if read != nil {
			out = append(out, read.Object)
		}
	}
	return out, nil
}

// names tells whether an exception names a policy.
func names(exception, source *unstructured.Unstructured) bool {
	full := source.GetName()
	if ns := source.GetNamespace(); ns != "" {
		full = ns + "/" + full
	}
	list, _, _ := unstructured.NestedSlice(exception.Object, "spec", "exceptions")
	return slices.ContainsFunc(list, func(one any) bool {
		ref, _ := one.(map[string]any)
		return ref["policyName"] == full
	})
}

// lookupsOf are what the rules of a policy read, in the order of their names, each once.
func lookupsOf(source *unstructured.Unstructured) []judge.Lookup {
	data, err := json.Marshal(source.Object)
	if err != nil {
		panic(err) // what came as JSON goes as JSON
	}
	f, _ := policy.Parse(source.GetName(), data)
	found := map[string]judge.Lookup{}
	for _, p := range f.Policies {
		for _, r := range p.Rules {
			for _, one := range judge.Lookups(&compile.Rule{Policy: p, Source: r}) {
				found[one.String()] = one
			}
		}
	}
	var out []judge.Lookup
	for _, name := range slices.Sorted(maps.Keys(found)) {
		out = append(out, found[name])
	}
	return out
}

// lookup reads an object; nil where it is not there, or may not be read.
func lookup(ctx context.Context, c *cluster.Connection, one judge.Lookup) (*unstructured.Unstructured, error) {
	gv, err := apischema.ParseGroupVersion(one.APIVersion)
	if err != nil {
		return nil, nil //nolint:nilerr // there is none of such a kind
	}
	m, err := c.Mapper.RESTMapping(apischema.GroupKind{Group: gv.Group, Kind: one.Kind}, gv.Version)
	if err != nil {
		return nil, nil //nolint:nilerr // as above
	}
	var in dynamic.ResourceInterface = c.Dynamic.Resource(m.Resource)
	if m.Scope.Name() == meta.RESTScopeNameNamespace {
		in = c.Dynamic.Resource(m.Resource).Namespace(one.Namespace)
	}
	o, err := in.Get(ctx, one.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err), apierrors.IsForbidden(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("%s: %w", one, err)
	}
	return o, nil
}
