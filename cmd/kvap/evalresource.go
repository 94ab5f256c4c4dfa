package main

import (
	"fmt"
	"io"
	"slices"
	"strings"

	kjson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"

	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/internal/exit"
	"github.com/kvap/kvap/internal/input"
	"github.com/kvap/kvap/internal/judge"
	"github.com/kvap/kvap/internal/manifest"
)

// resourceInputs are the resources as requests.
func (f evalFlags) resourceInputs(stdin io.Reader, e *evaluation) ([]question, error) {
	resources, sources, found, err := input.Manifests("--resource", f.resources, stdin)
	if err != nil {
		return nil, err
	}
	e.sources, e.found = append(e.sources, sources...), append(e.found, found...)
	old, sources, found, err := input.Manifests("--old", f.old, stdin)
	if err != nil {
		return nil, err
	}
	e.sources, e.found = append(e.sources, sources...), append(e.found, found...)
	client := judge.Client{Schemas: e.schemas, Operation: f.operation, Namespace: f.namespace, User: f.user, Groups: f.groups}
	switch {
	case client.Operation == "" && len(f.old) > 0:
		client.Operation = "UPDATE"
	case client.Operation == "":
		client.Operation = "CREATE"
	}
	var out []question
	for _, o := range resources {
		before := manifest.Object{}
		if i := slices.IndexFunc(old, func(old manifest.Object) bool { return client.Same(o, old) }); i >= 0 {
			before = old[i]
		}
		out = append(out, question{pos: o.Pos, read: func() (string, *judge.Request, diag.List) {
			request, ds := f.request(client, o, before)
			return o.Title(), request, ds
		}})
	}
	return out, nil
}

// documentInputs are the JSON documents, which are no objects of a cluster.
func (f evalFlags) documentInputs(stdin io.Reader, e *evaluation) ([]question, error) {
	sources, found, err := input.Read(f.documents, stdin)
	if err != nil {
		return nil, exit.Usage(fmt.Errorf("--json: %w", err))
	}
	e.sources, e.found = append(e.sources, sources...), append(e.found, found...)
	var out []question
	for _, s := range sources {
		at := diag.Pos{File: s.Name, Line: 1, Col: 1}
		out = append(out, question{pos: at, read: func() (string, *judge.Request, diag.List) {
			var document map[string]any
			text, err := yaml.YAMLToJSON(s.Data)
			if err == nil {
				err = kjson.Unmarshal(text, &document)
			}
			switch {
			case err != nil:
				return s.Name, nil, diag.List{diag.Errorf(at, diag.BadRequest, "the document is no JSON object: %v", err)}
			case document == nil:
				return s.Name, nil, diag.List{diag.Errorf(at, diag.BadRequest, "the document is empty")}
			}
			return s.Name, judge.NewDocument(document), nil
		}})
	}
	return out, nil
}

func (f evalFlags) request(client judge.Client, o, old manifest.Object) (*judge.Request, diag.List) {
	admission, found := client.Request(o, old)
	if admission == nil {
		return nil, found
	}
	request, err := judge.NewRequest(admission)
	if err != nil {
		return nil, append(found, diag.Errorf(o.Pos, diag.BadRequest, "%s: %v", o.Title(), err))
	}
	request.Roles, request.ClusterRoles = f.roles, f.clusterRoles
	return request, found
}

// title names a request that has no id.
func title(r map[string]any) string {
	kind, _ := r["kind"].(map[string]any)
	words := []string{fmt.Sprint(kind["kind"])}
	for _, key := range []string{"namespace", "name"} {
		if s, _ := r[key].(string); s != "" {
			words = append(words, s)
		}
	}
	return strings.Join(words, "/")
}
