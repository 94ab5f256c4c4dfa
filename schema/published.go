package schema

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
)

// A Project is where the definition of a kind was published.
type Project struct {
	Name    string // for instance argoproj/argo-cd
	Version string
	License string
}

// String is the project in messages.
func (p Project) String() string { return p.Name + " " + p.Version }

// A published is the kinds that projects publish definitions of. Nothing of a group is
// decoded until the type of one of its kinds is asked for.
type published struct {
	mu     sync.Mutex
	groups map[string]*publishedGroup
}

// A publishedGroup has the schemas of a group by their names, those that were asked for
// decoded.
type publishedGroup struct {
	lines   map[string]string
	schemas map[string]*crdSchema
}

// WithPublished is the set with the kinds that popular projects publish. What the set
// knows by itself, be it of the release or of a definition, comes first: see Resources.
func (s *Set) WithPublished() *Set {
	to := s.clone()
	to.published = &published{groups: map[string]*publishedGroup{}}
	return to
}

// Published are all kinds that WithPublished adds, by group and kind, the newest version
// of a kind first.
func Published() []Resource {
	return readPublished(func(string, string, string, string) bool { return true })
}

// readPublished reads the lines of the table that are wanted. gen/published/doc.go has their form.
func readPublished(want func(group, version, kind, plural string) bool) (found []Resource) {
	for line := range strings.Lines(publishedKinds) {
		group, rest, _ := strings.Cut(line, " ")
		version, rest, _ := strings.Cut(rest, " ")
		kind, rest, _ := strings.Cut(rest, " ")
		plural, rest, _ := strings.Cut(rest, " ")
		if !want(group, version, kind, plural) {
			continue
		}
		words := strings.Fields(rest)
		r := Resource{GVK: GVK{group, version, kind}, Plural: plural, Namespaced: words[0] == "Namespaced",
			Project: &Project{Name: words[2], Version: words[3], License: words[4]}}
		for sub := range strings.SplitSeq(words[1], ",") {
			switch sub {
			case "scale":
				r.Subresources = append(r.Subresources, Subresource{sub, GVK{"autoscaling", "v1", "Scale"}})
			case "status":
				r.Subresources = append(r.Subresources, Subresource{sub, r.GVK})
			}
		}
		found = append(found, r)
	}
	return found
}

// publishedWhere is what is wanted of the published kinds beside those that it knows by itself: of a kind that
// it knows in one version it has no other.
func (s *Set) publishedWhere(want func(group, version, kind, plural string) bool) []Resource {
	if s.published == nil {
		return nil
	}
	return slices.DeleteFunc(readPublished(want), func(p Resource) bool {
		return slices.ContainsFunc(s.resources, func(r Resource) bool { return r.Group == p.Group && r.Kind == p.Kind })
	})
}

// publishedKind is the resource of a kind.
func (s *Set) publishedKind(k GVK) (Resource, bool) {
	found := s.publishedWhere(func(group, version, kind, _ string) bool { return GVK{group, version, kind} == k })
	if len(found) == 0 {
		return Resource{}, false
	}
	return found[0], true
}

// publishedType is the type of a kind, or of all that match its group and version.
func (s *Set) publishedType(kind GVK) *Type {
	var t *Type
	for _, r := range s.Published(kind.Group, kind.Version, kind.Kind) {
		t = common(t, s.customType(s.published.schema(r.GVK)))
	}
	return t
}

// common is the type of what is of the one type or of the other: of a field that only one
// of them has it is that. Nil is no type yet.
func common(a, b *Type) *Type {
	switch {
	case a == nil || a == b:
		return b
	case a.Kind != b.Kind || a.Format != b.Format:
		return &Type{Kind: Any, Open: true}
	}
	t := &Type{Kind: a.Kind, Format: a.Format, Nullable: a.Nullable || b.Nullable, Open: a.Open || b.Open}
	t.Published = t.Open && a.Published == a.Open && b.Published == b.Open
	if a.Elem != nil {
		t.Elem = common(a.Elem, b.Elem)
	}
	if a.Kind != Object {
		return t
	}
	t.Fields = maps.Clone(a.Fields)
	for name, f := range b.Fields {
		both, ok := a.Fields[name]
		if !ok {
			both = &Field{Name: name, Type: f.Type}
		} else {
			both = &Field{Name: name, Type: common(both.Type, f.Type), Required: both.Required && f.Required, Mandatory: both.Mandatory && f.Mandatory}
		}
		t.Fields[name] = both
	}
	return t
}

// schema is the schema of a kind, or of any object where there is none.
func (p *published) schema(kind GVK) *crdSchema {
	p.mu.Lock()
	defer p.mu.Unlock()
	g := p.groups[kind.Group]
	if g == nil {
		var err error
		if g, err = readGroup(kind.Group); err != nil {
			g = &publishedGroup{} // any object: safe, and a test reads every group
		}
		p.groups[kind.Group] = g
	}
	if out := g.named(kind.Version + "." + kind.Kind); out != nil {
		return out
	}
	return &crdSchema{Type: "object", Preserve: true}
}

// readGroup finds the lines of the schemas of a group without decoding them.
func readGroup(group string) (*publishedGroup, error) {
	packed, err := data.ReadFile("data/published/" + group + ".json.gz")
	if err != nil {
		return nil, err
	}
	r, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(r)
	if err != nil {
		return nil, err
	}
	g := &publishedGroup{lines: map[string]string{}, schemas: map[string]*crdSchema{}}
	return g, eachSchema(string(text), func(name, schema string) { g.lines[name] = schema })
}

// named is a schema, made once: others share it.
func (g *publishedGroup) named(name string) *crdSchema {
	if s, ok := g.schemas[name]; ok {
		return s
	}
	line, ok := g.lines[name]
	if !ok {
		return nil
	}
	var s *crdSchema
	if json.Unmarshal([]byte(line), &s) != nil {
		return nil
	}
	s = g.resolve(s)
	g.schemas[name] = s
	return s
}

// resolve puts the schemas in place of references to them. No schema holds itself.
func (g *publishedGroup) resolve(s *crdSchema) *crdSchema {
	if s == nil {
		return nil
	}
	if s.Ref != "" {
		return g.named(s.Ref)
	}
	s.published = true
	s.Items = g.resolve(s.Items)
	if s.Additional != nil {
		s.Additional.schema = g.resolve(s.Additional.schema)
	}
	for name, p := range s.Properties {
		s.Properties[name] = g.resolve(p)
	}
	return s
}

// eachSchema visits the lines of a file of schemas without decoding them.
func eachSchema(lines string, visit func(name, schema string)) error {
	const before, between = `{"name":"`, `","schema":`
	for line := range strings.Lines(lines) {
		rest, ok := strings.CutPrefix(line, before)
		name, schema, found := strings.Cut(rest, between)
		if !ok || !found {
			return fmt.Errorf("a line is no definition: %.40q", line)
		}
		visit(name, strings.TrimSuffix(schema, "}\n"))
	}
	return nil
}
