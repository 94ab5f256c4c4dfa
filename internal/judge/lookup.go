package judge

import (
	"fmt"
	"strings"

	"github.com/kvap/kvap/compile"
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

// Lookups are the objects that a rule as written reads, apart from those whose name
// or namespace depends on the request.
func Lookups(rule *compile.Rule) []Lookup {
	if rule.Source == nil {
		return nil
	}
	r := lookups{rule.Policy}
	out := r.configMaps(rule.Source.Context)
	v := rule.Source.Validate
	if v == nil {
		return out
	}
	if v.CEL != nil && v.CEL.ParamKind != nil && v.CEL.ParamRef != nil && v.CEL.ParamRef.Name != "" {
		ref, kind := v.CEL.ParamRef, v.CEL.ParamKind
		out = append(out, Lookup{ref.Pos, kind.APIVersion, kind.Kind, ref.Namespace, ref.Name})
	}
	return append(out, r.inLoops(v.ForEach)...)
}

// lookups are those of a policy.
type lookups struct{ policy *policy.Policy }

func (r lookups) inLoops(loops []*policy.ForEach) (out []Lookup) {
	for _, loop := range loops {
		out = append(out, r.configMaps(loop.Context)...)
		out = append(out, r.inLoops(loop.ForEach)...)
	}
	return out
}

func (r lookups) configMaps(entries []*policy.ContextEntry) (out []Lookup) {
	for _, e := range entries {
		if e.ConfigMap == nil || strings.Contains(e.ConfigMap.Name.Value, "{{") || strings.Contains(e.ConfigMap.Namespace.Value, "{{") {
			continue
		}
		l := Lookup{e.ConfigMap.Pos, "v1", "ConfigMap", e.ConfigMap.Namespace.Value, e.ConfigMap.Name.Value}
		switch {
		case l.Namespace != "":
		case r.policy.Namespaced():
			l.Namespace = r.policy.Namespace
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
