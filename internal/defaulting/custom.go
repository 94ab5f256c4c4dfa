package defaulting

import (
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	structuraldefaulting "k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apimachinery/pkg/runtime"
	kjson "k8s.io/apimachinery/pkg/util/json"

	"github.com/kvap/kvap/schema"
)

// fillCustom is an object of a custom kind with the defaults of its schema.
func (d *Defaulter) fillCustom(object map[string]any, gvk schema.GVK) map[string]any {
	if d.schemas == nil || !d.schemas.Custom(gvk) {
		return object
	}
	out := runtime.DeepCopyJSON(object)
	s := structural(d.schemas.Type(gvk))
	structuraldefaulting.PruneNonNullableNullsWithoutDefaults(out, s)
	structuraldefaulting.Default(out, s)
	return out
}

// structural is what a type says of defaults, as the API server's code takes it.
func structural(t *schema.Type) *structuralschema.Structural {
	s := &structuralschema.Structural{Generic: structuralschema.Generic{Nullable: t.Nullable}}
	if t.Default != nil {
		// a type has JSON
		_ = kjson.Unmarshal(t.Default, &s.Default.Object)
	}
	switch t.Kind {
	case schema.Object:
		s.Properties = map[string]structuralschema.Structural{}
		for name, f := range t.Fields {
			s.Properties[name] = *structural(f.Type)
		}
	case schema.List:
		s.Items = structural(t.Elem)
	case schema.Map:
		s.AdditionalProperties = &structuralschema.StructuralOrBool{Structural: structural(t.Elem)}
	}
	return s
}
