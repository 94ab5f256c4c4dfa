package schema

import (
	"encoding/json"
	"slices"
	"strings"
)

const objectMeta = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"

// A definition is a schema as the embedded sets have it.
type definition struct {
	Ref        string                 `json:"$ref"`
	Type       string                 `json:"type"`
	Format     string                 `json:"format"`
	Items      *definition            `json:"items"`
	Properties map[string]*definition `json:"properties"`
	Additional *definition            `json:"additionalProperties"`
	Required   []string               `json:"required"`
	Always     []string               `json:"always"`
	Empty      []string               `json:"empty"`
	Preserve   bool                   `json:"x-kubernetes-preserve-unknown-fields"`
}

// builtinType is the type of a kind. A definition may also stand inside other
// kinds, as a PersistentVolumeClaim does in a StatefulSet, and there it may lack
// what the API server gives every top-level object: so this is a copy.
func (s *Set) builtinType(name string) *Type {
	return topLevel(s.definition(name))
}

// topLevel makes apiVersion, kind and metadata required.
func topLevel(t *Type) *Type {
	top := *t
	top.Fields = make(map[string]*Field, len(t.Fields))
	for name, f := range t.Fields {
		switch name {
		case "apiVersion", "kind", "metadata":
			f = &Field{Name: name, Type: f.Type, Required: true, Mandatory: true}
		}
		top.Fields[name] = f
	}
	return &top
}

// definition is the type of a definition, made once. A definition that refers to
// itself, as JSONSchemaProps does, meets the unfinished type in the map.
func (s *Set) definition(name string) *Type {
	if t, ok := s.named[name]; ok {
		return t
	}
	t := &Type{}
	s.named[name] = t
	if special, ok := specialType(name); ok {
		*t = special
		return t
	}
	var d definition
	if json.Unmarshal([]byte(s.definitions[name]), &d) != nil {
		return t // Any: safe, and a test reads every definition
	}
	*t = *s.convert(&d)
	for _, field := range nulls(name) {
		if f := t.Fields[field]; f != nil {
			nullable := *f.Type // a reference is shared
			nullable.Nullable = true
			f.Type = &nullable
		}
	}
	return t
}

// nulls are the fields of a definition that an API server hands to policies as
// null when they are empty: their Go fields, lists and pointers, are written
// without omitempty, and neither defaults nor validation see to it that they are
// there.
func nulls(definition string) []string {
	switch definition {
	case "io.k8s.api.rbac.v1.ClusterRole", "io.k8s.api.rbac.v1.Role":
		return []string{"rules"}
	case "io.k8s.api.discovery.v1.EndpointSlice":
		return []string{"endpoints", "ports"}
	case "io.k8s.api.core.v1.PodExecOptions":
		return []string{"command"}
	case "io.k8s.api.core.v1.ProjectedVolumeSource":
		return []string{"sources"}
	case "io.k8s.api.core.v1.LimitRangeSpec":
		return []string{"limits"}
	case "io.k8s.api.core.v1.AzureFilePersistentVolumeSource":
		return []string{"secretNamespace"}
	case "io.k8s.api.core.v1.TypedLocalObjectReference", "io.k8s.api.core.v1.TypedObjectReference":
		return []string{"apiGroup"}
	case "io.k8s.api.authentication.v1.TokenRequestSpec":
		return []string{"audiences", "boundObjectRef"}
	case "io.k8s.api.autoscaling.v2.HorizontalPodAutoscalerStatus":
		return []string{"currentMetrics"}
	case "io.k8s.api.batch.v1.PodFailurePolicy":
		return []string{"rules"}
	case "io.k8s.api.storage.v1.CSINodeSpec":
		return []string{"drivers"}
	case "io.k8s.api.storage.v1.CSINodeDriver":
		return []string{"topologyKeys"}
	}
	if strings.HasPrefix(definition, "io.k8s.api.flowcontrol.v1") && strings.HasSuffix(definition, ".ResourcePolicyRule") {
		return []string{"namespaces"}
	}
	return nil
}

// specialType is the type of the definitions whose JSON form the OpenAPI does
// not tell, or tells in words only.
func specialType(name string) (Type, bool) {
	switch name {
	case "io.k8s.apimachinery.pkg.api.resource.Quantity":
		return Type{Kind: String, Format: Quantity}, true
	case "io.k8s.apimachinery.pkg.apis.meta.v1.Duration":
		return Type{Kind: String, Format: Duration}, true
	case "io.k8s.apimachinery.pkg.util.intstr.IntOrString":
		return Type{Kind: IntOrString}, true
	case "io.k8s.apimachinery.pkg.runtime.RawExtension":
		return Type{Kind: Any, Open: true}, true // any JSON
	}
	return Type{}, false
}

// convert makes a type of a schema. An object that names no fields may have any,
// such as managedFields' fieldsV1; a schema without a type, such as
// JSONSchemaPropsOrBool, is any JSON.
func (s *Set) convert(d *definition) *Type {
	if d.Ref != "" {
		return s.definition(d.Ref)
	}
	switch d.Type {
	case "array":
		return &Type{Kind: List, Elem: s.element(d.Items)}
	case "object":
		if d.Additional != nil {
			return &Type{Kind: Map, Elem: s.element(d.Additional)}
		}
		return s.object(d)
	}
	return scalar(d.Type, d.Format)
}

func (s *Set) element(d *definition) *Type {
	if d == nil {
		return &Type{Kind: Any, Open: true}
	}
	return s.convert(d)
}

func (s *Set) object(d *definition) *Type {
	t := &Type{
		Kind:   Object,
		Fields: make(map[string]*Field, len(d.Properties)),
		Open:   d.Preserve || len(d.Properties) == 0,
	}
	for name, p := range d.Properties {
		typ := s.convert(p)
		if p.Ref == "" && (typ.Kind == List || typ.Kind == Map) {
			typ.Filled = !slices.Contains(d.Empty, name)
		}
		t.Fields[name] = &Field{
			Name:      name,
			Type:      typ,
			Required:  slices.Contains(d.Always, name),
			Mandatory: slices.Contains(d.Required, name),
		}
	}
	return t
}

// scalar is the type of a schema without fields and items.
func scalar(typ, format string) *Type {
	switch typ {
	case "boolean":
		return &Type{Kind: Bool}
	case "integer":
		return &Type{Kind: Int}
	case "number":
		return &Type{Kind: Number}
	case "string":
		if format == "int-or-string" {
			return &Type{Kind: IntOrString}
		}
		return &Type{Kind: String, Format: formatNamed(format)}
	}
	return &Type{Kind: Any, Open: true}
}
