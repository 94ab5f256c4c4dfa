package defaulting

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/schema"
)

// FillsIn tells whether an object has a field by the time policies see it, whatever it was
// written with, as long as it has what is around the field. A path has cel.EachElement for
// elements.
//
// Nothing tells of defaults but objects that are filled in. Two are: one with nothing beside
// the field, and one with all that has a plain value. A Deployment whose strategy is empty gets
// a rollingUpdate, and one whose strategy has a type may not.
func (d *Defaulter) FillsIn(kind schema.GVK, path []string) bool {
	if isSet(kind, path) {
		return true
	}
	for _, full := range []bool{false, true} {
		object, _ := probe(d.schemas.Type(kind), path, full).(map[string]any)
		if object == nil {
			return false
		}
		u := &unstructured.Unstructured{Object: object}
		u.SetAPIVersion(kind.APIVersion())
		u.SetKind(kind.Kind)
		if !has(d.Fill(u.Object), path) {
			return false
		}
	}
	return true
}

// isSet tells of fields that an API server sets by other means than defaults.
func isSet(kind schema.GVK, path []string) bool {
	if len(path) != 2 {
		return false
	}
	switch {
	case path[0] == "metadata":
		return slices.Contains([]string{"uid", "creationTimestamp", "managedFields"}, path[1])
	case path[0] == "spec" && kind == schema.GVK{Version: "v1", Kind: "Pod"}:
		return slices.Contains([]string{"preemptionPolicy", "priority", "serviceAccountName", "tolerations"}, path[1])
	}
	return false
}

// probe is a value of a type with what leads to a place, and with all plain values beside it
// where it is full.
func probe(t *schema.Type, path []string, full bool) any {
	if t == nil {
		return nil
	}
	switch t.Kind {
	case schema.List:
		return []any{probe(t.Elem, path[1:], full)}
	case schema.Map:
		if len(path) == 1 {
			return map[string]any{}
		}
		return map[string]any{path[0]: probe(t.Elem, path[1:], full)}
	case schema.Object:
		out := map[string]any{}
		for name, f := range t.Fields {
			switch {
			case name == path[0] && len(path) > 1:
				out[name] = probe(f.Type, path[1:], full)
			case name != path[0] && full:
				if v := plain(f.Type); v != nil {
					out[name] = v
				}
			}
		}
		return out
	}
	return nil
}

// plain is a value of a type that has no parts; nil of others.
func plain(t *schema.Type) any {
	switch t.Kind {
	case schema.Bool:
		return true
	case schema.Int, schema.Number, schema.IntOrString:
		return int64(1)
	case schema.String:
		switch t.Format {
		case schema.Quantity:
			return "1"
		case schema.Duration:
			return "1s"
		case schema.DateTime:
			return "2024-01-01T00:00:00Z"
		case schema.Bytes:
			return "YQ=="
		}
		return "a"
	}
	return nil
}

// has tells whether a value has something at a place.
func has(v any, path []string) bool {
	if len(path) == 0 {
		return v != nil
	}
	switch v := v.(type) {
	case map[string]any:
		return has(v[path[0]], path[1:])
	case []any:
		return path[0] == cel.EachElement && len(v) == 1 && has(v[0], path[1:])
	}
	return false
}
