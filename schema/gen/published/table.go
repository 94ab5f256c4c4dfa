package main

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
)

// A schema is a structural schema, as far as it is kept.
type schema struct {
	Ref         string             `json:"$ref,omitempty"`
	Type        string             `json:"type,omitempty"`
	Properties  map[string]*schema `json:"properties,omitempty"`
	Items       *schema            `json:"items,omitempty"`
	Additional  *schema            `json:"additionalProperties,omitempty"`
	Nullable    bool               `json:"nullable,omitempty"`
	Preserve    bool               `json:"x-kubernetes-preserve-unknown-fields,omitempty"`
	IntOrString bool               `json:"x-kubernetes-int-or-string,omitempty"`
	Embedded    bool               `json:"x-kubernetes-embedded-resource,omitempty"`
}

// reduce keeps of a schema what it says of fields and their types.
func reduce(from map[string]any) *schema {
	s := &schema{}
	s.Type, _ = from["type"].(string)
	s.Nullable, _ = from["nullable"].(bool)
	s.Preserve, _ = from["x-kubernetes-preserve-unknown-fields"].(bool)
	s.IntOrString, _ = from["x-kubernetes-int-or-string"].(bool)
	s.Embedded, _ = from["x-kubernetes-embedded-resource"].(bool)
	if format, _ := from["format"].(string); format == "int-or-string" {
		s.IntOrString = true
	}
	if items, ok := from["items"].(map[string]any); ok {
		s.Items = reduce(items)
	}
	switch more := from["additionalProperties"].(type) {
	case bool:
		if more {
			s.Additional = &schema{}
		}
	case map[string]any:
		s.Additional = reduce(more)
	}
	if properties, ok := from["properties"].(map[string]any); ok && len(properties) > 0 {
		s.Properties = map[string]*schema{}
		for name, p := range properties {
			if p, ok := p.(map[string]any); ok {
				s.Properties[name] = reduce(p)
			}
		}
	}
	return s
}

// A table is the schemas of a group. One that occurs more than once is written once.
type table struct {
	roots   []named
	seen    map[string]int    // how often a schema, by its text, occurs in different ones
	numbers map[string]string // of those that are written once
	lines   []named
}

type named struct {
	Name   string  `json:"name"`
	Schema *schema `json:"schema"`
}

func (t *table) add(name string, s *schema) {
	t.roots = append(t.roots, named{name, s})
	t.count(s)
}

func (t *table) count(s *schema) {
	text := textOf(s)
	if t.seen[text]++; t.seen[text] > 1 {
		return
	}
	if s.Items != nil {
		t.count(s.Items)
	}
	if s.Additional != nil {
		t.count(s.Additional)
	}
	for _, p := range s.Properties {
		t.count(p)
	}
}

// encode is all lines.
func (t *table) encode() []byte {
	for _, r := range t.roots {
		t.lines = append(t.lines, named{r.Name, t.parts(r.Schema)})
	}
	var buf bytes.Buffer
	e := json.NewEncoder(&buf)
	for _, l := range t.lines {
		if err := e.Encode(l); err != nil {
			panic(err) // there is nothing in it that has no JSON
		}
	}
	return buf.Bytes()
}

// shortest is the length of the shortest schema to which it pays to refer.
const shortest = 60

// shared is the schema, or a reference to it.
func (t *table) shared(s *schema) *schema {
	text := textOf(s)
	if t.seen[text] < 2 || len(text) < shortest {
		return t.parts(s)
	}
	if t.numbers[text] == "" {
		parts := t.parts(s)
		t.numbers[text] = strconv.Itoa(len(t.numbers))
		t.lines = append(t.lines, named{t.numbers[text], parts})
	}
	return &schema{Ref: t.numbers[text]}
}

// parts is the schema with references inside.
func (t *table) parts(s *schema) *schema {
	out := *s
	if s.Items != nil {
		out.Items = t.shared(s.Items)
	}
	if s.Additional != nil {
		out.Additional = t.shared(s.Additional)
	}
	if s.Properties != nil {
		out.Properties = make(map[string]*schema, len(s.Properties))
		for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
			out.Properties[name] = t.shared(s.Properties[name])
		}
	}
	return &out
}

func textOf(s *schema) string {
	text, err := json.Marshal(s)
	if err != nil {
		panic(err) // there is nothing in it that has no JSON
	}
	return string(text)
}
