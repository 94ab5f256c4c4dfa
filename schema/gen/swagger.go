package main

import (
	"encoding/json"
	"os"
	"strings"
)

// A document is what is read of a swagger.json.
type document struct {
	Definitions map[string]*definition                `json:"definitions"`
	Paths       map[string]map[string]json.RawMessage `json:"paths"`
}

// A definition is a schema, in the file and in the set alike; what is not named
// here is left out.
type definition struct {
	Ref        string                 `json:"$ref,omitempty"`
	Type       string                 `json:"type,omitempty"`
	Format     string                 `json:"format,omitempty"`
	Items      *definition            `json:"items,omitempty"`
	Properties map[string]*definition `json:"properties,omitempty"`
	Additional *definition            `json:"additionalProperties,omitempty"`
	Required   []string               `json:"required,omitempty"`
	Always     []string               `json:"always,omitempty"` // not in the file: see required.go
	Empty      []string               `json:"empty,omitempty"`  // not in the file: see required.go
	Preserve   bool                   `json:"x-kubernetes-preserve-unknown-fields,omitempty"`
	Kinds      []gvk                  `json:"x-kubernetes-group-version-kind,omitempty"`
}

// A gvk is a group, version and kind, with the names the file gives them.
type gvk struct {
	Group   string `json:"group"`
	Version string `json:"version"`
	Kind    string `json:"kind"`
}

func readSwagger(path string) (*document, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	doc := &document{}
	if err := json.Unmarshal(text, doc); err != nil {
		return nil, err
	}
	for _, d := range doc.Definitions {
		d.shortenRefs()
	}
	return doc, nil
}

// shortenRefs makes each reference the bare name of its definition.
func (d *definition) shortenRefs() {
	d.Ref = strings.TrimPrefix(d.Ref, "#/definitions/")
	for child := range d.children() {
		child.shortenRefs()
	}
}

// children yields the schemas directly inside, in no stated order.
func (d *definition) children() func(yield func(*definition) bool) {
	return func(yield func(*definition) bool) {
		for _, p := range d.Properties {
			if !yield(p) {
				return
			}
		}
		for _, c := range []*definition{d.Items, d.Additional} {
			if c != nil && !yield(c) {
				return
			}
		}
	}
}
