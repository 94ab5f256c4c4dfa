package suite

import (
	"encoding/json"
	"maps"

	apischema "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kvap/kvap/internal/judge"
	"github.com/kvap/kvap/internal/manifest"
	"github.com/kvap/kvap/interp"
	"github.com/kvap/kvap/schema"
)

// answers are what a cluster, a service or a registry would say, as a suite, its
// values or its context mock it.
type answers struct {
	Calls   []callAnswer   `json:"apiCallResponses"`
	Globals []globalAnswer `json:"globalContextEntries"`
}

// A callAnswer is the answer to calls of a path of the API server, or of the URL of a
// service.
type callAnswer struct {
	URLPath  string `json:"urlPath"`
	URL      string `json:"url"`
	Method   string `json:"method"`
	Response any    `json:"response"`
}

// A globalAnswer is what a GlobalContextEntry holds.
type globalAnswer struct {
	Name string `json:"name"`
	Data any    `json:"data"`
}

// world is what the interpreter asks: the objects that rules may look up, each at
// its own path of the API and in the lists of its kind, and the answers that are
// mocked.
func (r *run) world(objects []map[string]any) *interp.Offline {
	w := judge.World(objects)
	w.Answers, w.Images, w.Globals = map[string][]byte{}, r.images, map[string]any{}
	r.serve(w, w.Objects)
	for _, a := range r.answers {
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
	return w
}

// serve answers calls of the API server with the objects.
func (r *run) serve(w *interp.Offline, objects []map[string]any) {
	lists := map[string][]any{}
	for _, value := range objects {
		o := manifest.Object{Value: value}
		all, own := r.paths(o)
		lists[all] = append(lists[all], value)
		if own != all {
			lists[own] = append(lists[own], value)
		}
		if text, err := json.Marshal(value); err == nil {
			w.Answers[own+"/"+o.Meta("name")] = text
		}
	}
	for path, items := range lists {
		if text, err := json.Marshal(map[string]any{"apiVersion": "v1", "kind": "List", "items": items}); err == nil {
			w.Answers[path] = text
		}
	}
}

// paths are where the API server has all objects of a kind, and those of the
// object's own namespace.
func (r *run) paths(o manifest.Object) (all, own string) {
	gv, _ := apischema.ParseGroupVersion(o.APIVersion()) // an odd one is found by nobody
	root := "/api/" + gv.Version
	if gv.Group != "" {
		root = "/apis/" + gv.Group + "/" + gv.Version
	}
	plural := r.plural(schema.GVK{Group: gv.Group, Version: gv.Version, Kind: o.Kind()})
	all = root + "/" + plural
	if namespace := o.Meta("namespace"); namespace != "" {
		return all, root + "/namespaces/" + namespace + "/" + plural
	}
	return all, all
}

func (r *run) plural(kind schema.GVK) string {
	if known, ok := r.runner.Schemas.ByKind(kind); ok {
		return known.Plural
	}
	if guessed := r.runner.Schemas.Resources(kind.Group, kind.Version, kind.Kind); len(guessed) > 0 {
		return guessed[0].Plural
	}
	return "" // of an object without a kind, or of a pattern: nobody asks for it
}

// imageData is what a Context says of images, by reference, in the form in which
// rules see the data of a registry.
func imageData(images []map[string]any) map[string]map[string]any {
	out := map[string]map[string]any{}
	for _, i := range images {
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
