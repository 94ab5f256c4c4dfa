package judge

import (
	"encoding/json"
	"maps"
	"strings"

	apischema "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kvap/kvap/interp"
	"github.com/kvap/kvap/schema"
)

// World is a world that has some objects, which are also found by API calls of kinds
// that the schemas know or can guess; without schemas by none. Schemas tell the kind of a
// resource, too, which a request for a subresource does not name.
func World(objects []map[string]any, schemas *schema.Set) *interp.Offline {
	out := &interp.Offline{Objects: stored(objects)}
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
	// Resources are in the place of Data for an entry with objects.
	Resources []map[string]any `json:"resources"`
	// FieldPath leads to what is taken of it: names with dots between.
	FieldPath   string       `json:"fieldPath"`
	Projections []Projection `json:"projections"`
}

// A Projection is a part of what an entry holds, under a name of its own.
type Projection struct {
	Name string `json:"name"`
	Path string `json:"path"`
}

// give has a world give the entry and its projections, which are keys of it too where it is
// a map.
func (g GlobalAnswer) give(w *interp.Offline) {
	root := g.Data
	if root == nil && g.Resources != nil {
		list := make([]any, len(g.Resources))
		for i, o := range g.Resources {
			list[i] = o
		}
		root = list
	}
	root = at(root, g.FieldPath)
	for _, p := range g.Projections {
		part := at(root, p.Path)
		w.Globals[g.Name+"."+p.Name] = part
		if m, ok := root.(map[string]any); ok {
			m = maps.Clone(m)
			m[p.Name] = part
			root = m
		}
	}
	w.Globals[g.Name] = root
}

// at is what a path of names leads to; nil where there is nothing.
func at(value any, path string) any {
	if path == "" {
		return value
	}
	for name := range strings.SplitSeq(path, ".") {
		m, _ := value.(map[string]any)
		value = m[name]
	}
	return value
}

// Give has a world give these answers, and no others that it gave to the same.
func (a Answers) Give(w *interp.Offline) {
	if w.Answers == nil {
		w.Answers, w.Globals, w.Mocked = map[string][]byte{}, map[string]any{}, map[string]int{}
	}
	for _, c := range a.Calls {
		body, status, structured := c.answer()
		text, err := json.Marshal(body)
		if err != nil { // what was read from a file can be written
			continue
		}
		w.Answers[c.URLPath+c.URL] = text
		if structured {
			w.Mocked[c.URLPath+c.URL] = status
		}
	}
	for _, g := range a.Globals {
		g.give(w)
	}
}

// answer is the body of the response, and its status, where it is written with both.
func (c CallAnswer) answer() (body any, status int, structured bool) {
	m, ok := c.Response.(map[string]any)
	body, has := m["body"]
	if !ok || !has {
		return c.Response, 200, false
	}
	for key := range m {
		if key != "body" && key != "statusCode" {
			return c.Response, 200, false
		}
	}
	status = 200
	switch given := m["statusCode"].(type) {
	case int64:
		status = int(given)
	case float64:
		status = int(given)
	}
	return body, status, true
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
