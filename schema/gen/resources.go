package main

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"
)

// A resource is a kind as its paths show it.
type resource struct {
	gvk
	Plural       string        `json:"plural"`
	Namespaced   bool          `json:"namespaced,omitempty"`
	Subresources []subresource `json:"subresources,omitempty"`
}

// A subresource has the kind of its body.
type subresource struct {
	Name string `json:"name"`
	gvk
}

// resources reads the served kinds from the paths, sorted by group, version and
// kind.
func resources(doc *document) []*resource {
	type key struct{ group, version, plural string }
	found := map[key]*resource{}
	for path, item := range doc.Paths {
		p, ok := parsePath(path)
		if !ok {
			continue
		}
		kind, ok := kindOf(item)
		if !ok {
			continue
		}
		k := key{p.group, p.version, p.plural}
		r := found[k]
		if r == nil {
			r = &resource{Plural: p.plural}
			found[k] = r
		}
		r.Namespaced = r.Namespaced || p.namespaced
		if p.sub != "" {
			r.Subresources = append(r.Subresources, subresource{p.sub, kind})
		} else {
			r.gvk = kind
		}
	}
	list := make([]*resource, 0, len(found))
	for _, r := range found {
		slices.SortFunc(r.Subresources, func(a, b subresource) int { return cmp.Compare(a.Name, b.Name) })
		list = append(list, r)
	}
	slices.SortFunc(list, func(a, b *resource) int { return compareKinds(a.gvk, b.gvk) })
	return list
}

func compareKinds(a, b gvk) int {
	return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Version, b.Version), cmp.Compare(a.Kind, b.Kind))
}

// A place is where a path points.
type place struct {
	group, version, plural, sub string
	namespaced                  bool
}

// parsePath reads /api/v1/... and /apis/GROUP/VERSION/... paths of a resource,
// an object or a subresource. Watch paths repeat what the others say; a path
// below a subresource ({path} of a proxy) says nothing new.
func parsePath(path string) (place, bool) {
	var p place
	parts := strings.Split(strings.Trim(path, "/"), "/")
	switch {
	case len(parts) > 2 && parts[0] == "api":
		p.version, parts = parts[1], parts[2:]
	case len(parts) > 3 && parts[0] == "apis":
		p.group, p.version, parts = parts[1], parts[2], parts[3:]
	default:
		return p, false
	}
	if len(parts) > 2 && parts[0] == "namespaces" && parts[1] == "{namespace}" {
		p.namespaced, parts = true, parts[2:]
	}
	p.plural = parts[0]
	if len(parts) == 3 {
		p.sub = parts[2]
	}
	return p, p.plural != "watch" && len(parts) <= 3 && (len(parts) == 1 || parts[1] == "{name}")
}

// kindOf is the kind of the body that is sent to a path, or else the kind of
// what is read from it. All operations but DELETE and PATCH name it; theirs may
// be DeleteOptions or the kind of the parent.
func kindOf(item map[string]json.RawMessage) (gvk, bool) {
	for _, verb := range []string{"post", "put", "get"} {
		var operation struct {
			Kind gvk `json:"x-kubernetes-group-version-kind"`
		}
		if json.Unmarshal(item[verb], &operation) == nil && operation.Kind.Kind != "" {
			return operation.Kind, true
		}
	}
	return gvk{}, false
}
