package translate

import "github.com/kvap/kvap/schema"

// unvalidated is a type as it is before an object is validated: what the Go type of a kind
// always writes is there, and what only validation asks for may not be.
func unvalidated(t *schema.Type, known map[*schema.Type]*schema.Type) *schema.Type {
	if t == nil {
		return nil
	}
	if out, ok := known[t]; ok {
		return out
	}
	out := *t
	known[t] = &out
	out.Elem = unvalidated(t.Elem, known)
	if t.Fields != nil {
		out.Fields = make(map[string]*schema.Field, len(t.Fields))
	}
	for name, f := range t.Fields {
		g := *f
		g.Type = unvalidated(f.Type, known)
		g.Required = f.Required && (f.Mandatory || isStructural(name) || name == "apiVersion" || name == "kind")
		if f.Mandatory && !g.Required && g.Type.Kind == schema.List { // which Go writes as null when it is empty
			list := *g.Type
			list.Nullable, g.Type = true, &list
		}
		out.Fields[name] = &g
	}
	return &out
}
