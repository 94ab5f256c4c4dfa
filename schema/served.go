package schema

import (
	"encoding/json"
	"fmt"
	"strings"
)

// WithServed is the set with resources added that a cluster serves: those of custom
// kinds and of other API servers behind it. document is the OpenAPI v3 document of
// their group and version, which says their types. A kind that is known already stays
// as it is, and one that the document does not define may have any fields.
func (s *Set) WithServed(resources []Resource, document []byte) (*Set, error) {
	var doc struct {
		Components struct {
			Schemas map[string]*openAPISchema `json:"schemas"`
		} `json:"components"`
	}
	if len(document) > 0 {
		if err := json.Unmarshal(document, &doc); err != nil {
			return s, fmt.Errorf("this is no OpenAPI v3 document: %w", err)
		}
	}
	byKind := map[GVK]*openAPISchema{}
	for _, schema := range doc.Components.Schemas {
		if schema != nil && len(schema.Kinds) == 1 { // DeleteOptions and its like have many
			byKind[schema.Kinds[0]] = schema
		}
	}
	to := s.clone()
	for _, r := range resources {
		if _, known := to.kinds[r.GVK]; known {
			continue
		}
		reader := openAPIReader{schemas: doc.Components.Schemas, within: map[string]bool{}}
		to.add(r, reader.resource(byKind[r.GVK]))
	}
	return to, nil
}

// An openAPISchema is a schema of an OpenAPI v3 document, as far as it matters here.
type openAPISchema struct {
	Ref         string                    `json:"$ref"`
	AllOf       []*openAPISchema          `json:"allOf"`
	Type        string                    `json:"type"`
	Format      string                    `json:"format"`
	Properties  map[string]*openAPISchema `json:"properties"`
	Items       *openAPISchema            `json:"items"`
	Additional  openAPIAdditional         `json:"additionalProperties"`
	Required    []string                  `json:"required"`
	Nullable    bool                      `json:"nullable"`
	Default     defaultValue              `json:"default"`
	Preserve    bool                      `json:"x-kubernetes-preserve-unknown-fields"`
	IntOrString bool                      `json:"x-kubernetes-int-or-string"`
	Embedded    bool                      `json:"x-kubernetes-embedded-resource"`
	Kinds       []GVK                     `json:"x-kubernetes-group-version-kind"`
}

// An openAPIAdditional is a schema, or a boolean.
type openAPIAdditional struct {
	schema *openAPISchema
	any    bool
}

// UnmarshalJSON reads a boolean or a schema.
func (a *openAPIAdditional) UnmarshalJSON(text []byte) error {
	if json.Unmarshal(text, &a.any) == nil {
		return nil
	}
	return json.Unmarshal(text, &a.schema)
}

// mostSchemas is how many schemas one kind may have with its references written out.
// A document that has more was not made by an API server.
const mostSchemas = 100_000

// An openAPIReader writes the references of one kind out.
type openAPIReader struct {
	schemas map[string]*openAPISchema
	within  map[string]bool // the references that are being written out
	count   int
}

// resource is the schema of a kind. Where there is none, or too much of it, an object
// may have any fields.
func (r *openAPIReader) resource(from *openAPISchema) *crdSchema {
	if from != nil {
		if out := r.read(from); r.count <= mostSchemas {
			return out
		}
	}
	return &crdSchema{Type: "object", Preserve: true}
}

// read is nil where nothing is known.
func (r *openAPIReader) read(from *openAPISchema) *crdSchema {
	if r.count++; from == nil || r.count > mostSchemas {
		return nil
	}
	if from.Ref == "" && len(from.AllOf) == 1 && from.AllOf[0] != nil { // a reference with a description or a default
		from = from.AllOf[0]
	}
	if from.Ref != "" {
		return r.reference(strings.TrimPrefix(from.Ref, "#/components/schemas/"))
	}
	out := &crdSchema{
		Type: from.Type, Format: from.Format, Items: r.read(from.Items), Required: from.Required, Nullable: from.Nullable, Default: from.Default,
		Preserve: from.Preserve, IntOrString: from.IntOrString || from.Format == "int-or-string", Embedded: from.Embedded,
	}
	if from.Additional.any || from.Additional.schema != nil {
		out.Additional = &schemaOrBool{schema: r.read(from.Additional.schema)}
	}
	if len(from.Properties) > 0 {
		out.Properties = map[string]*crdSchema{}
	}
	for name, p := range from.Properties {
		out.Properties[name] = r.read(p)
	}
	return out
}

// reference is the schema of that name. Inside of itself it is not known.
func (r *openAPIReader) reference(name string) *crdSchema {
	to := r.schemas[name]
	if to == nil || r.within[name] {
		return nil
	}
	if special, ok := specialType(name); ok && special.Kind != String {
		return &crdSchema{IntOrString: special.Kind == IntOrString, Preserve: special.Open}
	}
	r.within[name] = true
	defer delete(r.within, name)
	return r.read(to)
}
