package main

import (
	"context"
	"encoding/json"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/schema"
)

// eachOf calls visit for each object of a kind that is served: its group, the kind,
// and the versions. What may not be read is left out.
func (c *connection) eachOf(ctx context.Context, kind []string, leave func(error), visit func(unstructured.Unstructured) error) error {
	resource, ok := c.serves(kind[0], kind[1], kind[2:]...)
	if !ok {
		return nil
	}
	items, _, err := c.list(ctx, resource)
	if apierrors.IsForbidden(err) || apierrors.IsNotFound(err) {
		leave(err)
		return nil
	}
	if err != nil {
		return err
	}
	for _, u := range items {
		if err := visit(u); err != nil {
			return err
		}
	}
	return nil
}

// definedTypes adds the types of the kinds that the cluster defines.
func (c *connection) definedTypes(ctx context.Context, known *schema.Set, leave func(error)) (*schema.Set, error) {
	err := c.eachOf(ctx, []string{"apiextensions.k8s.io", "CustomResourceDefinition", "v1"}, leave, func(u unstructured.Unstructured) error {
		u.SetManagedFields(nil)
		data, err := json.Marshal(u.Object)
		if err != nil {
			return err
		}
		if next, found := known.WithCRDFile(u.GetName(), data); !found.HasErrors() {
			known = next
		}
		return nil
	})
	return known, err
}

// choicesFor takes the release of the cluster where the user names none that it
// differs from.
func (f choiceFlags) choicesFor(c *connection, chosen choices) (choices, error) {
	release, err := cel.ParseRelease(c.release)
	if err != nil || !release.IsSupported() || f.release != cel.Default.String() {
		return chosen, nil //nolint:nilerr // the release that was asked for, or the default, does
	}
	schemas, err := loadSchemas(release, f.crds)
	if err != nil {
		return chosen, err
	}
	chosen.translate.Release, chosen.translate.Schemas = release, schemas
	return chosen, nil
}

// excepts tells whether exceptions of a namespace count, by the flag.
func excepts(given []string, namespace string) bool {
	trusted, _ := exceptionNamespaces(given) // checked
	return slices.Contains(trusted, "*") || slices.Contains(trusted, namespace)
}
