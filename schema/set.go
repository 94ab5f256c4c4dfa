package schema

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
)

// A Set is what is known of the types of one cluster.
type Set struct {
	release     string
	resources   []Resource // by group, version, kind
	definitions map[string]string
	kinds       map[GVK]typeSource
	published   *published // nil where they do not count

	mu    sync.Mutex       // guards what follows
	named map[string]*Type // by name of the definition
	types map[GVK]*Type
}

// A typeSource is where the type of a kind comes from: a definition of the release,
// or the schema of a CRD.
type typeSource struct {
	definition string
	crd        *crdSchema
}

// Releases are the Kubernetes releases that Builtin knows, the oldest first.
func Releases() []string {
	return []string{"1.30", "1.31", "1.32", "1.33", "1.34", "1.35", "1.36", "1.37"}
}

// Builtin is the set of the kinds that a release of Kubernetes, for instance
// 1.34, serves by itself. It reads the index only; each Type is made at first use.
func Builtin(release string) (*Set, error) {
	if !slices.Contains(Releases(), release) {
		return nil, fmt.Errorf("no types are known of Kubernetes %q; use one of %s", release, strings.Join(Releases(), ", "))
	}
	text, err := readData(release)
	if err != nil {
		return nil, fmt.Errorf("the embedded types of Kubernetes %s: %w", release, err)
	}
	s := newSet(release)
	if err := s.index(text); err != nil {
		return nil, fmt.Errorf("the embedded types of Kubernetes %s: %w", release, err)
	}
	return s, nil
}

func newSet(release string) *Set {
	return &Set{
		release:     release,
		definitions: map[string]string{},
		kinds:       map[GVK]typeSource{},
		named:       map[string]*Type{},
		types:       map[GVK]*Type{},
	}
}

// Release is the Kubernetes release of the set, for instance 1.34.
func (s *Set) Release() string { return s.release }

// clone is a set to add to. The definitions are shared: nobody writes them.
func (s *Set) clone() *Set {
	c := newSet(s.release)
	c.resources = slices.Clone(s.resources)
	c.definitions = s.definitions
	c.kinds = maps.Clone(s.kinds)
	c.published = s.published
	return c
}

func readData(release string) ([]byte, error) {
	packed, err := data.ReadFile("data/" + release + ".json.gz")
	if err != nil {
		return nil, err
	}
	r, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, err
	}
	return io.ReadAll(r)
}

// index reads the first line, and finds the lines of the definitions without
// decoding them.
func (s *Set) index(data []byte) error {
	text := string(data)
	head, lines, _ := strings.Cut(text, "\n")
	if err := s.indexKinds(head); err != nil {
		return err
	}
	return eachSchema(lines, func(name, schema string) { s.definitions[name] = schema })
}

// indexKinds reads the resources and the kinds.
func (s *Set) indexKinds(head string) error {
	type kind struct{ Group, Version, Kind string }
	var index struct {
		Resources []struct {
			kind
			Plural       string
			Namespaced   bool
			Subresources []struct {
				kind
				Name string
			}
		}
		Types []struct {
			kind
			Definition string
		}
	}
	if err := json.Unmarshal([]byte(head), &index); err != nil {
		return err
	}
	for _, r := range index.Resources {
		res := Resource{GVK: GVK(r.kind), Plural: r.Plural, Namespaced: r.Namespaced}
		for _, sub := range r.Subresources {
			res.Subresources = append(res.Subresources, Subresource{sub.Name, GVK(sub.kind)})
		}
		s.resources = append(s.resources, res)
	}
	for _, t := range index.Types {
		s.kinds[GVK(t.kind)] = typeSource{definition: t.Definition}
	}
	slices.SortStableFunc(s.resources, compareResources)
	return nil
}

func compareResources(a, b Resource) int { return a.GVK.Compare(b.GVK) }

// Compare orders kinds by group, version and kind.
func (g GVK) Compare(h GVK) int {
	return cmp.Or(cmp.Compare(g.Group, h.Group), cmp.Compare(g.Version, h.Version), cmp.Compare(g.Kind, h.Kind))
}

// APIVersion is the apiVersion of an object of the kind.
func (g GVK) APIVersion() string {
	if g.Group == "" {
		return g.Version
	}
	return g.Group + "/" + g.Version
}

// String is the kind as messages show it, for instance apps/v1 Deployment.
func (g GVK) String() string { return g.APIVersion() + " " + g.Kind }

// Custom tells of a kind that a given CustomResourceDefinition defines, not the release.
func (s *Set) Custom(kind GVK) bool { return s.kinds[kind].crd != nil }

// Type is the type of the objects of a kind, or nil where it is not known. Group and
// version may be those of a Resource that stands for all that are published. The
// body of a subresource, such as autoscaling/v1 Scale, is a kind as well.
func (s *Set) Type(kind GVK) *Type {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t, ok := s.types[kind]; ok {
		return t
	}
	var t *Type
	src, ok := s.kinds[kind]
	switch {
	case !ok:
		if t = s.publishedType(kind); t == nil {
			return nil
		}
	case src.crd != nil:
		t = s.customType(src.crd)
	default:
		t = s.builtinType(src.definition)
	}
	s.types[kind] = t
	return t
}

// ObjectMeta is the type of the metadata of every kind, known or not.
func (s *Set) ObjectMeta() *Type {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.definition(objectMeta)
}
