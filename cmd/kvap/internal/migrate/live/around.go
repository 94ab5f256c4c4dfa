package live

import (
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	apischema "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kvap/kvap/cmd/kvap/internal/migrate"
	"github.com/kvap/kvap/compile"
	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/internal/cluster"
	"github.com/kvap/kvap/internal/judge"
)

// wayOut ends what is said of something that may not be read.
const wayOut = "have it allowed: " + diag.Docs + "migration.md has a role for it"

// readError is an error of reading what a verb goes by. What may not be read is not taken for
// what is not there.
func readError(what string, err error) error {
	if apierrors.IsForbidden(err) {
		return fmt.Errorf("%s not known: %w; %s", what, err, wayOut)
	}
	return err
}

// Exceptions reads the exceptions of a cluster, those of both of Kyverno's groups. A kind
// that is not installed has none.
func Exceptions(ctx context.Context, c *cluster.Connection) (out []unstructured.Unstructured, err error) {
	for _, kind := range [][]string{
		{"kyverno.io", "PolicyException", "v2", "v2beta1"},
		{migrate.ExceptingGroup, "PolicyException", "v1", "v1beta1", "v1alpha1"},
	} {
		items, _, err := listed(ctx, c, kind...)
		if err != nil {
			return nil, readError("the exceptions from policies are", err)
		}
		out = append(out, items...)
	}
	return out, nil
}

// Around is what decides, beside a policy itself, what it says: the exceptions that
// name it, and the objects that its rules read, where their names are written out.
func Around(ctx context.Context, c *cluster.Connection, source *unstructured.Unstructured, exceptions []unstructured.Unstructured) ([]map[string]any, error) {
	var out []map[string]any
	for i := range exceptions {
		if isNamedBy(&exceptions[i], source) {
			out = append(out, exceptions[i].Object)
		}
	}
	add := func(what any, at apischema.GroupVersionResource, namespace, name string) error {
		read, err := c.Dynamic.Resource(at).Namespace(namespace).Get(ctx, name, metav1.GetOptions{})
		switch {
		case err == nil:
			out = append(out, read.Object)
		case !apierrors.IsNotFound(err):
			return fmt.Errorf("%s: %w", what, readError("what a rule reads is", err))
		}
		return nil
	}
	for _, one := range lookupsOf(source) {
		gv, _ := apischema.ParseGroupVersion(one.APIVersion)
		m, err := c.Mapper.RESTMapping(apischema.GroupKind{Group: gv.Group, Kind: one.Kind}, gv.Version)
		if err != nil {
			continue // there is none of such a kind
		}
		namespace := one.Namespace
		if m.Scope.Name() != meta.RESTScopeNameNamespace {
			namespace = ""
		}
		if err := add(one, m.Resource, namespace, one.Name); err != nil {
			return nil, err
		}
	}
	for _, one := range gotBy(source) {
		gv, err := apischema.ParseGroupVersion(one.apiVersion)
		if err != nil {
			continue // there is none of such a version
		}
		if err := add(one.resource+" "+one.namespace+"/"+one.name, gv.WithResource(one.resource), one.namespace, one.name); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// isNamedBy tells whether an exception names a policy.
func isNamedBy(exception, source *unstructured.Unstructured) bool {
	inCEL, field := source.GroupVersionKind().Group == migrate.ExceptingGroup, "exceptions"
	if inCEL {
		field = "policyRefs"
	}
	if inCEL != (exception.GroupVersionKind().Group == migrate.ExceptingGroup) {
		return false // each group of exceptions names its own policies
	}
	list, _, _ := unstructured.NestedSlice(exception.Object, "spec", field)
	return slices.ContainsFunc(list, func(one any) bool {
		ref, _ := one.(map[string]any)
		if inCEL {
			return ref["name"] == source.GetName() && ref["kind"] == source.GetKind()
		}
		return ref["policyName"] == strings.TrimPrefix(source.GetNamespace()+"/"+source.GetName(), "/")
	})
}

// A got object is one that a policy in CEL reads by resource.Get, with nothing computed.
type got struct{ apiVersion, resource, namespace, name string }

// gotBy are the objects that the expressions of a policy in CEL read. What stands in a
// comment is read for nothing, and does no harm.
func gotBy(source *unstructured.Unstructured) (out []got) {
	if source.GroupVersionKind().Group != migrate.ExceptingGroup {
		return nil
	}
	const text = `\s*['"]([^'"]*)['"]\s*`
	call := regexp.MustCompile(`\.Get\(` + text + "," + text + "," + text + "," + text + `\)`)
	var walk func(any)
	walk = func(v any) {
		switch v := v.(type) {
		case map[string]any:
			for _, key := range slices.Sorted(maps.Keys(v)) {
				walk(v[key])
			}
		case []any:
			for _, one := range v {
				walk(one)
			}
		case string:
			for _, m := range call.FindAllStringSubmatch(v, -1) {
				out = append(out, got{m[1], m[2], m[3], m[4]})
			}
		}
	}
	walk(source.Object["spec"])
	return out
}

// lookupsOf are what the rules of a policy read, in the order of their names, each once.
func lookupsOf(source *unstructured.Unstructured) (out []judge.Lookup) {
	found := map[string]judge.Lookup{}
	for _, p := range migrate.PoliciesOf(source) {
		for _, r := range p.Rules {
			for _, one := range judge.Lookups(&compile.Rule{Policy: p, Source: r}) {
				found[one.String()] = one
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(found)) {
		out = append(out, found[name])
	}
	return out
}
