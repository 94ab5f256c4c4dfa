package judge

import (
	"encoding/json"
	"maps"

	apischema "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kvap/kvap/interp"
	"github.com/kvap/kvap/schema"
)

// World is a world that has some objects, which are also found by API calls of kinds
// that the schemas know or can guess; without schemas by none. Schemas tell the kind of a
// resource, too, which a request for a subresource does not name.
func World(objects []map[string]any, schemas *schema.Set) *interp.Offline {
	out := &interp.Offline{Objects: withNamespaceNames(objects)}
	if schemas != nil {
		out.Plural = func(apiVersion, kind string) string { return plural(schemas, apiVersion, kind) }
		out.Formats = Formats(schemas)
		out.Unscoped = func(apiVersion, kind string) bool {
			gv, _ := apischema.ParseGroupVersion(apiVersion) // an odd one is found by nobody
			known, ok := schemas.ByKind(schema.GVK{Group: gv.Group, Version: gv.Version, Kind: kind})
			return ok && !known.Namespaced
		}
		out.Kinds = func(group, version, resource string) (string, bool) {
			known, ok := schemas.ByResource(group, version, resource)
			return known.Kind, ok
		}
	}
	return out
}

// Formats are the formats of fields that the schemas know.
func Formats(schemas *schema.Set) func(group, version, kind string, field []string) interp.Format {
	return func(group, version, kind string, field []string) interp.Format {
		return formatOf(schemas.Type(schema.GVK{Group: group, Version: version, Kind: kind}), field)
	}
}

// formatOf is the format of a field of a type.
func formatOf(t *schema.Type, field []string) interp.Format {
	for _, key := range field {
		if t == nil {
			break
		}
		switch f := t.Fields[key]; {
		case f != nil:
			t = f.Type
		case t.Elem != nil:
			t = t.Elem
		default:
			t = nil
		}
	}
	switch {
	case t == nil || t.Nullable:
		return interp.AnyText
	case t.Kind == schema.IntOrString:
		return interp.IntOrString
	case t.Kind == schema.String && t.Format == schema.Quantity:
		return interp.Quantity
	case t.Kind == schema.String && t.Format == schema.Duration:
		return interp.Duration
	}
	return interp.AnyText
}

func plural(schemas *schema.Set, apiVersion, kind string) string {
	gv, _ := apischema.ParseGroupVersion(apiVersion) // an odd one is found by nobody
	if known, ok := schemas.ByKind(schema.GVK{Group: gv.Group, Version: gv.Version, Kind: kind}); ok {
		return known.Plural
	}
	if guessed := schemas.Resources(gv.Group, gv.Version, kind); len(guessed) > 0 {
		return guessed[0].Plural
	}
	return "" // of an object without a kind, or of a pattern: nobody asks for it
}

// A Context is the spec of a Context of the Kyverno command line: what a cluster, a
// service or a registry would say.
type Context struct {
	Resources []map[string]any `json:"resources"`
	Images    []map[string]any `json:"images"`
	Answers
}

// Answers are what a cluster, a service or a GlobalContextEntry would say.
type Answers struct {
	Calls   []CallAnswer   `json:"apiCallResponses"`
	Globals []GlobalAnswer `json:"globalContextEntries"`
}

// A CallAnswer is the answer to calls of a path of the API server, or of the URL of a
// service.
type CallAnswer struct {
	URLPath  string `json:"urlPath"`
	URL      string `json:"url"`
	Method   string `json:"method"`
	Response any    `json:"response"`
}

// A GlobalAnswer is what a GlobalContextEntry holds.
type GlobalAnswer struct {
	Name string `json:"name"`
	Data any    `json:"data"`
}

// Give has a world give these answers, and no others that it gave to the same.
func (a Answers) Give(w *interp.Offline) {
	if w.Answers == nil {
		w.Answers, w.Globals = map[string][]byte{}, map[string]any{}
	}
	for _, c := range a.Calls {
		text, err := json.Marshal(c.Response)
		if err != nil { // what was read from a file can be written
			continue
		}
		w.Answers[c.URLPath+c.URL] = text
	}
	for _, g := range a.Globals {
		w.Globals[g.Name] = g.Data
	}
}

// ImageData is what a Context says of images, by reference, in the form in which
// rules see the data of a registry.
func (c Context) ImageData() map[string]map[string]any {
	out := map[string]map[string]any{}
	for _, i := range c.Images {
		reference, _ := i["image"].(string)
		data := maps.Clone(i)
		if config, ok := data["config"]; ok {
			data["configData"] = config
			delete(data, "config")
		}
		out[reference] = data
	}
	return out
}
