package checking

import (
	"bytes"
	"slices"
	"strings"

	"k8s.io/client-go/restmapper"

	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/internal/input"
	"github.com/kvap/kvap/schema"
)

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
		next, err := set.WithServed(k.resources, k.document)
		if err != nil {
			return nil, err
		}
		set = next
	}
	return set, nil
}
