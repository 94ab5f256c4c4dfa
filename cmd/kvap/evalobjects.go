package main

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"

	sigsjson "sigs.k8s.io/json"

	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/internal/exit"
	"github.com/kvap/kvap/internal/judge"
	"github.com/kvap/kvap/internal/manifest"
	"github.com/kvap/kvap/interp"
)

// readManifests reads the objects of some paths. A path that does not exist ends
// the run; a document that cannot be read is a diagnostic.
func readManifests(flag string, paths []string, stdin io.Reader) ([]manifest.Object, []source, diag.List, error) {
	if len(paths) == 0 {
		return nil, nil, nil, nil
	}
	sources, found, err := readInput(paths, stdin)
	if err != nil {
		return nil, nil, nil, exit.Usage(fmt.Errorf("%s: %w", flag, err))
	}
	var objects []manifest.Object
	for _, s := range sources {
		if len(s.data) == sizeLimit {
			found = append(found, diag.Errorf(diag.Pos{File: s.name}, diag.Unreadable, "the file is larger than 10 MiB; split it"))
			continue
		}
		read, ds := manifest.Read(s.name, s.data)
		objects, found = append(objects, read...), append(found, ds...)
	}
	return objects, sources, found, nil
}

// readObjects reads what rules look up. A Context of the Kyverno command line
// counts as the objects in it, and as the answers.
func (e *evaluation) readObjects(paths []string, stdin io.Reader) error {
	objects, sources, found, err := readManifests("--param", paths, stdin)
	if err != nil {
		return err
	}
	e.sources = append(e.sources, sources...)
	e.found = append(e.found, found...)
	for _, o := range objects {
		if o.Kind() == "" || o.APIVersion() == "" {
			e.found = append(e.found, diag.Errorf(o.Pos, diag.BadRequest, "the object has no kind or no apiVersion; rules cannot look it up"))
			continue
		}
		if err := e.readObject(o); err != nil {
			e.found = append(e.found, diag.Errorf(o.Pos, diag.BadRequest, "%v", err))
		}
	}
	return nil
}

// readObject reads an object that rules look up, or a Context.
func (e *evaluation) readObject(o manifest.Object) error {
	e.objects = append(e.objects, contextObjects(o.Value)...)
	if !isContext(o.Value) {
		return nil
	}
	text, err := json.Marshal(o.Value["spec"])
	if err != nil {
		return err
	}
	var context judge.Context
	if err := sigsjson.UnmarshalCaseSensitivePreserveInts(text, &context); err != nil {
		return fmt.Errorf("the Context cannot be read: %w", err)
	}
	e.contexts = append(e.contexts, context)
	return nil
}

func isContext(o map[string]any) bool {
	return o["kind"] == "Context" && o["apiVersion"] == "cli.kyverno.io/v1alpha1"
}

// contextObjects are the objects in a Context; of another object it is itself.
func contextObjects(o map[string]any) []map[string]any {
	if !isContext(o) {
		return []map[string]any{o}
	}
	spec, _ := o["spec"].(map[string]any)
	resources, _ := spec["resources"].([]any)
	var out []map[string]any
	for _, r := range resources {
		if object, ok := r.(map[string]any); ok {
			out = append(out, object)
		}
	}
	return out
}

// world is what the interpreter asks.
func (e *evaluation) world() *interp.Offline {
	w := judge.World(e.objects, e.schemas)
	w.Images = map[string]map[string]any{}
	if e.registry != nil {
		w.Proofs, w.Metadata = e.registry, e.registry.Image
	}
	for _, c := range e.contexts {
		maps.Copy(w.Images, c.ImageData())
		c.Give(w)
	}
	return w
}
