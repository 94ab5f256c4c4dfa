package court

import (
	"fmt"
	"strings"

	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/policy"
)

// A Lookup is an object of a fixed name that a rule reads.
type Lookup struct {
	Pos                               diag.Pos
	APIVersion, Kind, Namespace, Name string
}

// String is the object in words.
func (l Lookup) String() string {
	if l.Namespace == "" {
		return fmt.Sprintf("%s %s", l.Kind, l.Name)
	}
	return fmt.Sprintf("%s %s/%s", l.Kind, l.Namespace, l.Name)
}

// Lookups are the objects that the rule reads, apart from those whose name or
// namespace depends on the request.
func (r *Rule) Lookups() []Lookup {
	if r.Origin == nil {
		return nil
	}
	out := r.configMaps(r.Origin.Context)
	v := r.Origin.Validate
	if v == nil {
		return out
	}
	if v.CEL != nil && v.CEL.ParamKind != nil && v.CEL.ParamRef != nil && v.CEL.ParamRef.Name != "" {
		ref, kind := v.CEL.ParamRef, v.CEL.ParamKind
		out = append(out, Lookup{ref.Pos, kind.APIVersion, kind.Kind, ref.Namespace, ref.Name})
	}
	return append(out, r.inLoops(v.ForEach)...)
}

func (r *Rule) inLoops(loops []*policy.ForEach) (out []Lookup) {
	for _, loop := range loops {
		out = append(out, r.configMaps(loop.Context)...)
		out = append(out, r.inLoops(loop.ForEach)...)
	}
	return out
}

func (r *Rule) configMaps(entries []*policy.ContextEntry) (out []Lookup) {
	for _, e := range entries {
		if e.ConfigMap == nil || strings.Contains(e.ConfigMap.Name.Value, "{{") || strings.Contains(e.ConfigMap.Namespace.Value, "{{") {
			continue
		}
		l := Lookup{e.ConfigMap.Pos, "v1", "ConfigMap", e.ConfigMap.Namespace.Value, e.ConfigMap.Name.Value}
		switch {
		case l.Namespace != "":
		case r.Policy.Namespaced():
			l.Namespace = r.Policy.Namespace
		default:
			l.Namespace = "default"
		}
		out = append(out, l)
	}
	return out
}

// In tells whether the object is among some.
func (l Lookup) In(objects []map[string]any) bool {
	for _, o := range objects {
		meta, _ := o["metadata"].(map[string]any)
		namespace, _ := meta["namespace"].(string)
		if o["apiVersion"] == l.APIVersion && o["kind"] == l.Kind && meta["name"] == l.Name && (l.Namespace == "" || namespace == l.Namespace) {
			return true
		}
	}
	return false
}
