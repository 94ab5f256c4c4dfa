package judge

import (
	"fmt"
	"slices"

	"github.com/kvap/kvap/compile"
	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/interp"
	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/translate"
	"github.com/kvap/kvap/vap/apiserver"
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
func Lookups(rule *compile.Rule) (out []Lookup) {
	if rule.Source == nil {
		return nil
	}
	for _, e := range rule.Source.ContextEntries() {
		if e.ConfigMap == nil {
			continue
		}
		if namespace, name, ok := e.ConfigMap.Fixed(rule.Policy); ok {
			out = append(out, Lookup{e.ConfigMap.Pos, "v1", "ConfigMap", namespace, name})
		}
	}
	if v := rule.Source.Validate; v != nil && v.CEL != nil && v.CEL.ParamKind != nil && v.CEL.ParamRef != nil && v.CEL.ParamRef.Name != "" {
		ref, kind := v.CEL.ParamRef, v.CEL.ParamKind
		out = append(out, Lookup{ref.Pos, kind.APIVersion, kind.Kind, ref.Namespace, ref.Name})
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

// Lacks tells whether a rule errs for want of an object that it looks up and that is not among
// those that are known, or may do so: for want of somebody to ask, as no cluster and no service is
// at hand where rules are judged, or of a ConfigMap that nobody knows before the request.
func Lacks(o Opinion, known []map[string]any) bool {
	if o.Status != interp.Error && o.Native != apiserver.Error {
		return false
	}
	return Asks(o.Rule) || varies(o.Rule.Rule) || slices.ContainsFunc(Lookups(o.Rule.Rule), func(one Lookup) bool { return !one.In(known) })
}

// varies tells of a rule that reads a ConfigMap whose name or namespace depends on the request.
func varies(r *compile.Rule) bool {
	return r.Source != nil && slices.ContainsFunc(r.Source.ContextEntries(), func(e *policy.ContextEntry) bool {
		return e.ConfigMap != nil && e.ConfigMap.Varies()
	})
}

// Asks tells of a rule that asks somebody, at the time of the request.
func Asks(f *compile.Form) bool {
	s := f.Rule.Source
	if s == nil { // a policy in CEL, which has no native form where it asks
		return f.Rule.Target == translate.Webhook
	}
	return slices.ContainsFunc(s.ContextEntries(), func(e *policy.ContextEntry) bool {
		return e.APICall != nil || e.ImageRegistry != nil || e.GlobalReference != nil
	})
}
