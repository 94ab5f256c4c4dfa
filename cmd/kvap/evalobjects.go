package main

import (
	"fmt"
	"io"

	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/internal/manifest"
)

// readManifests reads the objects of some paths. A path that does not exist ends
// the run; a document that cannot be read is a diagnostic.
func readManifests(flag string, paths []string, stdin io.Reader) ([]manifest.Object, []source, diag.List, error) {
	if len(paths) == 0 {
		return nil, nil, nil, nil
	}
	sources, found, err := readInput(paths, stdin)
	if err != nil {
		return nil, nil, nil, &exit{exitUsage, fmt.Errorf("%s: %w", flag, err)}
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
// counts as the objects in it.
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
		e.objects = append(e.objects, contextObjects(o.Value)...)
	}
	return nil
}

func contextObjects(o map[string]any) []map[string]any {
	if o["kind"] != "Context" || o["apiVersion"] != "cli.kyverno.io/v1alpha1" {
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
