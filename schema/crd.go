package schema

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/kvap/kvap/diag"
)

// A crd is what is read of a CustomResourceDefinition. What the schema room has
// no use for is passed over: the API server, not kvap, judges definitions.
type crd struct {
	APIVersion string `yaml:"apiVersion"`
	Kind       string `yaml:"kind"`
	Metadata   struct {
		Name string `yaml:"name"`
	} `yaml:"metadata"`
	Spec struct {
		Group string `yaml:"group"`
		Scope string `yaml:"scope"`
		Names struct {
			Kind   string `yaml:"kind"`
			Plural string `yaml:"plural"`
		} `yaml:"names"`
		PreserveUnknownFields bool         `yaml:"preserveUnknownFields"`
		Versions              []crdVersion `yaml:"versions"`
	} `yaml:"spec"`
}

type crdVersion struct {
	Name         string       `yaml:"name"`
	Served       bool         `yaml:"served"`
	Subresources subresources `yaml:"subresources"`
	Schema       struct {
		OpenAPI *crdSchema `yaml:"openAPIV3Schema"`
	} `yaml:"schema"`
}

type subresources struct {
	Status *struct{} `yaml:"status"`
	Scale  *struct{} `yaml:"scale"`
}

// A crdSchema is a structural schema.
type crdSchema struct {
	Type        string                `yaml:"type" json:"type"`
	Format      string                `yaml:"format" json:"format"`
	Properties  map[string]*crdSchema `yaml:"properties" json:"properties"`
	Items       *crdSchema            `yaml:"items" json:"items"`
	Additional  *schemaOrBool         `yaml:"additionalProperties" json:"additionalProperties"`
	Required    []string              `yaml:"required" json:"required"`
	Nullable    bool                  `yaml:"nullable" json:"nullable"`
	Default     defaultValue          `yaml:"default" json:"default"`
	Preserve    bool                  `yaml:"x-kubernetes-preserve-unknown-fields" json:"x-kubernetes-preserve-unknown-fields"`
	IntOrString bool                  `yaml:"x-kubernetes-int-or-string" json:"x-kubernetes-int-or-string"`
	Embedded    bool                  `yaml:"x-kubernetes-embedded-resource" json:"x-kubernetes-embedded-resource"`
	Ref         string                `yaml:"-" json:"$ref"` // in embedded files
	published   bool                  // by a project: a cluster may have another release
}

// A schemaOrBool is the value of additionalProperties; schema is nil where it
// allows anything.
type schemaOrBool struct {
	schema *crdSchema
	none   bool // false: no further properties
}

// UnmarshalYAML reads a boolean or a schema.
func (s *schemaOrBool) UnmarshalYAML(n *yaml.Node) error {
	if n.Kind == yaml.ScalarNode {
		var any bool
		err := n.Decode(&any)
		s.none = !any
		return err
	}
	return n.Decode(&s.schema)
}

// UnmarshalJSON reads a schema; embedded files have no boolean.
func (s *schemaOrBool) UnmarshalJSON(text []byte) error { return json.Unmarshal(text, &s.schema) }

// A defaultValue is the JSON text of a default; nil where there is none.
type defaultValue []byte

// UnmarshalYAML reads any value.
func (d *defaultValue) UnmarshalYAML(n *yaml.Node) error {
	var value any
	err := n.Decode(&value)
	if err == nil {
		*d, err = json.Marshal(value)
	}
	return err
}

// UnmarshalJSON keeps the text.
func (d *defaultValue) UnmarshalJSON(text []byte) error {
	*d = bytes.Clone(text)
	return nil
}

// WithCRDs is the set with the kinds of CustomResourceDefinitions added: YAML
// streams or JSON, also as the items of a List. Documents of other kinds are
// passed over with a note. A definition with an error is left out; the others
// count. Positions have line and column, but no file: use WithCRDFile for that.
func (s *Set) WithCRDs(docs ...[]byte) (*Set, diag.List) {
	to := s.clone()
	var ds diag.List
	for _, doc := range docs {
		ds = append(ds, to.addFile("", doc)...)
	}
	return to, ds
}

// WithCRDFile is WithCRDs for the text of one file.
func (s *Set) WithCRDFile(name string, text []byte) (*Set, diag.List) {
	to := s.clone()
	return to, to.addFile(name, text)
}

// addFile may be called before the set is handed out only.
func (s *Set) addFile(name string, text []byte) (ds diag.List) {
	// JSON may have tabs where YAML may not.
	if trimmed := bytes.TrimSpace(text); bytes.HasPrefix(trimmed, []byte("{")) && json.Valid(trimmed) {
		text = bytes.ReplaceAll(text, []byte("\t"), []byte(" "))
	}
	in := yaml.NewDecoder(bytes.NewReader(text))
	for {
		var doc yaml.Node
		err := in.Decode(&doc)
		if errors.Is(err, io.EOF) {
			return ds
		}
		if err != nil {
			return append(ds, notYAML(diag.Pos{File: name}, err))
		}
		if doc.Kind == yaml.DocumentNode && len(doc.Content) == 1 {
			ds = append(ds, s.addDocument(name, "", doc.Content[0])...)
		}
	}
}

// addDocument adds a definition or a list of them. path is where the node stands
// in its document.
func (s *Set) addDocument(file, path string, n *yaml.Node) (ds diag.List) {
	pos := diag.Pos{File: file, Line: n.Line, Col: n.Column, Path: path}
	if n.Kind == yaml.ScalarNode && n.Tag == "!!null" {
		return nil // an empty document
	}
	var c crd
	var head struct {
		APIVersion string      `yaml:"apiVersion"`
		Kind       string      `yaml:"kind"`
		Items      []yaml.Node `yaml:"items"`
	}
	if err := n.Decode(&head); err != nil {
		return diag.List{notCRD(pos, err)}
	}
	if strings.HasSuffix(head.Kind, "List") && head.Items != nil {
		for i := range head.Items {
			ds = append(ds, s.addDocument(file, fmt.Sprintf("items[%d]", i), &head.Items[i])...)
		}
		return ds
	}
	if head.Kind != "CustomResourceDefinition" || head.APIVersion != "apiextensions.k8s.io/v1" {
		return diag.List{otherKind(pos, head.APIVersion, head.Kind)}
	}
	if err := n.Decode(&c); err != nil {
		return diag.List{notCRD(pos, err)}
	}
	return s.addCRD(pos, &c)
}

// addCRD adds all served versions of a definition.
func (s *Set) addCRD(pos diag.Pos, c *crd) (ds diag.List) {
	for _, field := range []struct{ path, value string }{
		{"spec.group", c.Spec.Group},
		{"spec.names.kind", c.Spec.Names.Kind},
		{"spec.names.plural", c.Spec.Names.Plural},
		{"spec.scope", c.Spec.Scope},
	} {
		if field.value == "" {
			ds = append(ds, missing(pos, c.Metadata.Name, field.path))
		}
	}
	if len(c.Spec.Versions) == 0 {
		ds = append(ds, missing(pos, c.Metadata.Name, "spec.versions"))
	}
	if s := c.Spec.Scope; s != "" && s != "Namespaced" && s != "Cluster" {
		ds = append(ds, badScope(pos, c.Metadata.Name, s))
	}
	if len(ds) > 0 {
		return ds
	}
	for _, v := range c.Spec.Versions {
		if !v.Served {
			continue
		}
		kind := GVK{c.Spec.Group, v.Name, c.Spec.Names.Kind}
		if _, ok := s.kinds[kind]; ok {
			ds = append(ds, defined(pos, c.Metadata.Name, kind))
			continue
		}
		s.addVersion(kind, c, v)
	}
	return ds
}

func (s *Set) addVersion(kind GVK, c *crd, v crdVersion) {
	r := Resource{GVK: kind, Plural: c.Spec.Names.Plural, Namespaced: c.Spec.Scope == "Namespaced"}
	if v.Subresources.Scale != nil {
		r.Subresources = append(r.Subresources, Subresource{"scale", GVK{"autoscaling", "v1", "Scale"}})
	}
	if v.Subresources.Status != nil {
		r.Subresources = append(r.Subresources, Subresource{"status", kind})
	}
	schema := v.Schema.OpenAPI
	if schema == nil || c.Spec.PreserveUnknownFields {
		schema = &crdSchema{Type: "object", Preserve: true}
	}
	s.add(r, schema)
}

// add may be called before the set is handed out only.
func (s *Set) add(r Resource, schema *crdSchema) {
	i, _ := slices.BinarySearchFunc(s.resources, r, compareResources)
	s.resources = slices.Insert(s.resources, i, r)
	s.kinds[r.GVK] = typeSource{crd: schema}
}

// customType is the type of a custom resource. Whatever the schema says of
// apiVersion, kind and metadata, the API server knows them better.
func (s *Set) customType(c *crdSchema) *Type {
	t := s.convertCRD(c)
	if t.Kind != Object {
		t = &Type{Kind: Object, Open: true}
	}
	return s.resource(t)
}

// resource gives an object what every object of the API server has.
func (s *Set) resource(t *Type) *Type {
	fields := map[string]*Field{
		"apiVersion": {Name: "apiVersion", Type: &Type{Kind: String}, Required: true, Mandatory: true},
		"kind":       {Name: "kind", Type: &Type{Kind: String}, Required: true, Mandatory: true},
		"metadata":   {Name: "metadata", Type: s.definition(objectMeta), Required: true, Mandatory: true},
	}
	for name, f := range t.Fields {
		if fields[name] == nil {
			fields[name] = f
		}
	}
	t.Fields = fields
	return t
}

// convertCRD makes a type of a structural schema. The API server prunes what an
// object does not name, unless the schema preserves it.
func (s *Set) convertCRD(c *crdSchema) *Type {
	t := s.convertShape(c)
	t.Nullable, t.Default = c.Nullable, c.Default
	return t
}

func (s *Set) convertShape(c *crdSchema) *Type {
	switch {
	case c.IntOrString:
		return &Type{Kind: IntOrString}
	case c.Embedded:
		return s.resource(s.convertObject(c))
	case c.Type == "array":
		return &Type{Kind: List, Elem: s.crdElement(c.Items)}
	case c.Additional != nil && !c.Additional.none:
		return &Type{Kind: Map, Elem: s.crdElement(c.Additional.schema)}
	case c.Type == "object", len(c.Properties) > 0:
		return s.convertObject(c)
	}
	return scalar(c.Type, c.Format)
}

func (s *Set) crdElement(c *crdSchema) *Type {
	if c == nil {
		return &Type{Kind: Any, Open: true}
	}
	return s.convertCRD(c)
}

func (s *Set) convertObject(c *crdSchema) *Type {
	t := &Type{
		Kind:   Object,
		Fields: make(map[string]*Field, len(c.Properties)),
		Open:   c.Preserve || len(c.Properties) == 0,
	}
	if c.published && !t.Open {
		t.Open, t.Published = true, true
	}
	for name, p := range c.Properties {
		required := slices.Contains(c.Required, name)
		t.Fields[name] = &Field{Name: name, Type: s.crdElement(p), Required: required, Mandatory: required}
	}
	return t
}
