package main

import (
	"fmt"
	"slices"
	"strings"
)

// A set is what one file holds.
type set struct {
	Version     string      `json:"version"` // of k8s.io/kubernetes
	Resources   []*resource `json:"resources"`
	Types       []typeOf    `json:"types"` // sorted by group, version, kind
	definitions map[string]*definition
}

// A typeOf says which definition a kind has.
type typeOf struct {
	gvk
	Definition string `json:"definition"`
}

const objectMeta = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"

// A builder makes a set of a swagger document and the Go types behind it.
type builder struct {
	doc *document
	src *goTypes
}

// build keeps the served kinds, the kinds of subresource bodies, ObjectMeta, and
// all that they refer to.
func build(doc *document, src *goTypes, version string) (*set, error) {
	b := &builder{doc, src}
	s := &set{Version: version, Resources: resources(doc), definitions: map[string]*definition{}}
	if err := b.addTypes(s); err != nil {
		return nil, err
	}
	b.keep(s, objectMeta)
	for _, t := range s.Types {
		b.keep(s, t.Definition)
	}
	for name, d := range s.definitions {
		var err error
		if d.Always, err = b.always(name); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		if d.Empty, err = b.empty(name); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		d.Kinds = nil
	}
	return s, nil
}

// addTypes finds the definition of each kind that a request can carry.
func (b *builder) addTypes(s *set) error {
	byKind := map[gvk]string{}
	for name, d := range b.doc.Definitions {
		if len(d.Kinds) == 1 {
			byKind[d.Kinds[0]] = name
		}
	}
	var kinds []gvk
	for _, r := range s.Resources {
		kinds = append(kinds, r.gvk)
		for _, sub := range r.Subresources {
			kinds = append(kinds, sub.gvk)
		}
	}
	slices.SortFunc(kinds, compareKinds)
	for _, k := range slices.Compact(kinds) {
		name, ok := byKind[k]
		if !ok {
			var err error
			if name, err = b.addOptions(k); err != nil {
				return fmt.Errorf("no definition of %v: %w", k, err)
			}
		}
		s.Types = append(s.Types, typeOf{k, name})
	}
	return nil
}

// addOptions makes the definition of a kind such as PodExecOptions.
func (b *builder) addOptions(k gvk) (string, error) {
	if k.Group != "" || !strings.HasSuffix(k.Kind, "Options") {
		return "", fmt.Errorf("it is neither in the swagger nor the options of a CONNECT request")
	}
	name := "io.k8s.api.core." + k.Version + "." + k.Kind
	d, err := b.src.options("api/core/"+k.Version, k.Kind)
	b.doc.Definitions[name] = d
	return name, err
}

// keep adds a definition and all that it refers to.
func (b *builder) keep(s *set, name string) {
	if s.definitions[name] != nil {
		return
	}
	d := b.doc.Definitions[name]
	s.definitions[name] = d
	b.keepRefs(s, d)
}

func (b *builder) keepRefs(s *set, d *definition) {
	if d.Ref != "" {
		b.keep(s, d.Ref)
	}
	for child := range d.children() {
		b.keepRefs(s, child)
	}
}
