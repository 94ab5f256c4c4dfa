package checking

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"

	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/internal/cluster"
	"github.com/kvap/kvap/internal/input"
	"github.com/kvap/kvap/schema"
	"github.com/kvap/kvap/vap"
)

// ReadCluster reads the policies of a cluster, where the run has no others, and the types
// of its custom kinds.
func (run *Run) ReadCluster(ctx context.Context, c *cluster.Connection) (err error) {
	if len(run.Sources) == 0 {
		if run.Sources, err = run.policies(ctx, c); err != nil {
			return err
		}
	}
	run.served, err = run.readServed(ctx, c)
	return err
}

// policies are the policies and bindings of the cluster, each as a file would have
// it. Of Kyverno-style policies those are left out of which native objects are there:
// these are what counts.
func (run *Run) policies(ctx context.Context, c *cluster.Connection) ([]input.Source, error) {
	var out []input.Source
	deployed := map[string]bool{}
	const group = "admissionregistration.k8s.io"
	native := [][]string{ // each with its versions
		{group, "ValidatingAdmissionPolicy", "v1"},
		{group, "ValidatingAdmissionPolicyBinding", "v1"},
		{group, "MutatingAdmissionPolicy", "v1", "v1beta1"},
		{group, "MutatingAdmissionPolicyBinding", "v1", "v1beta1"},
	}
	for _, kind := range slices.Concat(native, cluster.SourceKinds()) {
		if kind[1] == "PolicyTranslation" {
			continue
		}
		err := c.EachOf(ctx, kind, func(err error) { run.Left = append(run.Left, err) }, func(u unstructured.Unstructured) error {
			noteMembers(deployed, u)
			if deployed[identityOf(u)] {
				return nil
			}
			s, err := cluster.SourceOf(u)
			out = append(out, s)
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return out, nil
}

// noteMembers notes of which policies a native object was made.
func noteMembers(deployed map[string]bool, u unstructured.Unstructured) {
	t, ok, err := vap.TranslationOf(u.GetAnnotations())
	if !ok || err != nil {
		return
	}
	for _, m := range t.Members {
		kind := "ValidatingPolicy"
		if strings.HasPrefix(m.Path, "spec.rules") {
			kind = "Policy"
		}
		deployed[kind+" "+m.Policy] = true
	}
}

// identityOf is how members of native objects name a policy.
func identityOf(u unstructured.Unstructured) string {
	kind, name := u.GetKind(), u.GetName()
	switch kind {
	case "ClusterPolicy":
		kind = "Policy"
	case "Policy", "NamespacedValidatingPolicy", "NamespacedMutatingPolicy", "NamespacedGeneratingPolicy", "NamespacedImageValidatingPolicy":
		kind, name = strings.TrimPrefix(kind, "Namespaced"), u.GetNamespace()+"/"+name
	}
	return kind + " " + name
}

// readServed reads the types of the kinds that are served and not built in. Those
// that the sources name come first: of the others there may be too many, and what is
// not known of them is no matter.
func (run *Run) readServed(ctx context.Context, c *cluster.Connection) ([]servedKinds, error) {
	client, err := discovery.NewDiscoveryClientForConfig(c.Config)
	if err != nil {
		return nil, err
	}
	all, err := servedBy(c.Groups)
	if err != nil {
		return nil, err
	}
	var named, others []servedKinds
	for _, k := range all {
		if k.namedIn(run.Sources) {
			named = append(named, k)
		} else {
			others = append(others, k)
		}
	}
	all = append(named, others...)
	room := int64(documentsRoom)
	for i := range all {
		k := &all[i]
		k.document, err = documentOf(ctx, client.RESTClient(), k.path(), room)
		room -= int64(len(k.document))
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if err != nil && i < len(named) {
			run.Left = append(run.Left, fmt.Errorf("the types of %s/%s: %w", k.Group, k.Version, err))
		}
	}
	return all, nil
}

// documentsRoom is how many bytes of OpenAPI documents are read of a cluster.
const documentsRoom = 64 << 20

// documentOf reads an OpenAPI document, as far as there is room for it.
func documentOf(ctx context.Context, client rest.Interface, path string, room int64) ([]byte, error) {
	body, err := client.Get().AbsPath(path).SetHeader("Accept", "application/json").Stream(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { _ = body.Close() }() // what was read is judged by itself
	data, err := io.ReadAll(io.LimitReader(body, room+1))
	switch {
	case err != nil:
		return nil, err
	case int64(len(data)) > room:
		return nil, fmt.Errorf("with it, there are more than %d MB of OpenAPI documents", documentsRoom>>20)
	case !json.Valid(data):
		return nil, fmt.Errorf("what is served at %s is no JSON", path)
	}
	return data, nil
}

// servedKinds are the resources of a group and version that a cluster serves and that
// are not built in, and the OpenAPI document of them; nil where it could not be read.
type servedKinds struct {
	Group, Version string
	resources      []schema.Resource
	document       []byte
}

// servedBy are the kinds that no release has built in, by group and version.
func servedBy(groups []*restmapper.APIGroupResources) ([]servedKinds, error) {
	builtin, err := schema.Builtin(cel.Latest.String())
	if err != nil {
		return nil, err
	}
	var out []servedKinds
	for _, g := range groups {
		for _, v := range g.Group.Versions {
			k := servedKinds{Group: g.Group.Name, Version: v.Version, resources: resourcesOf(g, v.Version)}
			k.resources = slices.DeleteFunc(k.resources, func(r schema.Resource) bool { return builtin.Type(r.GVK) != nil })
			if len(k.resources) > 0 {
				out = append(out, k)
			}
		}
	}
	slices.SortFunc(out, func(a, b servedKinds) int { return strings.Compare(a.path(), b.path()) })
	return out, nil
}

// resourcesOf are the resources of a version, with their subresources.
func resourcesOf(g *restmapper.APIGroupResources, version string) []schema.Resource {
	var out []schema.Resource
	for _, r := range g.VersionedResources[version] {
		if !strings.Contains(r.Name, "/") {
			gvk := schema.GVK{Group: g.Group.Name, Version: version, Kind: r.Kind}
			out = append(out, schema.Resource{GVK: gvk, Plural: r.Name, Namespaced: r.Namespaced})
		}
	}
	for _, r := range g.VersionedResources[version] {
		plural, sub, ok := strings.Cut(r.Name, "/")
		i := slices.IndexFunc(out, func(of schema.Resource) bool { return of.Plural == plural })
		if !ok || i < 0 {
			continue
		}
		gvk := schema.GVK{Group: g.Group.Name, Version: version, Kind: r.Kind}
		if r.Version != "" {
			gvk.Group, gvk.Version = r.Group, r.Version
		}
		out[i].Subresources = append(out[i].Subresources, schema.Subresource{Name: sub, GVK: gvk})
	}
	return out
}

// path is where the API server serves the document.
func (k servedKinds) path() string {
	if k.Group == "" {
		return "/openapi/v3/api/" + k.Version
	}
	return "/openapi/v3/apis/" + k.Group + "/" + k.Version
}

// namedIn tells that the sources may be about one of the kinds.
func (k servedKinds) namedIn(sources []input.Source) bool {
	return slices.ContainsFunc(sources, func(s input.Source) bool {
		return k.Group != "" && bytes.Contains(s.Data, []byte(k.Group)) || slices.ContainsFunc(k.resources, func(r schema.Resource) bool {
			return bytes.Contains(s.Data, []byte(r.Kind)) || bytes.Contains(s.Data, []byte(r.Plural))
		})
	})
}

// WithServed are the types of a release, and those that a cluster serves.
func (run *Run) WithServed(set *schema.Set) (*schema.Set, error) {
	for _, k := range run.served {
		var err error
		if set, err = set.WithServed(k.resources, k.document); err != nil {
			return nil, err
		}
	}
	return set, nil
}
