package evaluate

import (
	"fmt"
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
func (e *Evaluation) resourceInputs() ([]question, error) {
	o := e.options
	resources, sources, found, err := input.Manifests("--resource", o.Resources, o.Stdin)
	if err != nil {
		return nil, err
	}
	e.Sources, e.Found = append(e.Sources, sources...), append(e.Found, found...)
	old, sources, found, err := input.Manifests("--old", o.Old, o.Stdin)
	if err != nil {
		return nil, err
	}
	e.Sources, e.Found = append(e.Sources, sources...), append(e.Found, found...)
	client := judge.Client{Schemas: e.schemas, Operation: o.Operation, Namespace: o.Namespace, User: o.User, Groups: o.Groups}
	switch {
	case client.Operation == "" && len(o.Old) > 0:
		client.Operation = "UPDATE"
	case client.Operation == "":
		client.Operation = "CREATE"
	}
	var out []question
	for _, one := range resources {
		before := manifest.Object{}
		if i := slices.IndexFunc(old, func(old manifest.Object) bool { return client.Same(one, old) }); i >= 0 {
			before = old[i]
		}
		out = append(out, question{pos: one.Pos, read: func() (string, *judge.Request, diag.List) {
			request, ds := o.request(client, one, before)
			return one.Title(), request, ds
		}})
	}
	return out, nil
}

// documentInputs are the JSON documents, which are no objects of a cluster.
func (e *Evaluation) documentInputs() ([]question, error) {
	sources, found, err := input.Read(e.options.Documents, e.options.Stdin)
	if err != nil {
		return nil, exit.Usage(fmt.Errorf("--json: %w", err))
	}
	e.Sources, e.Found = append(e.Sources, sources...), append(e.Found, found...)
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

func (o Options) request(client judge.Client, now, old manifest.Object) (*judge.Request, diag.List) {
	admission, found := client.Request(now, old)
	if admission == nil {
		return nil, found
	}
	request, err := judge.NewRequest(admission)
	if err != nil {
		return nil, append(found, diag.Errorf(now.Pos, diag.BadRequest, "%s: %v", now.Title(), err))
	}
	request.Roles, request.ClusterRoles = o.Roles, o.ClusterRoles
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
