package cellib

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/google/cel-go/cel"
	kjson "k8s.io/apimachinery/pkg/util/json"
)

// A resource is where the API server has objects of a kind.
type resource struct{ apiVersion, plural string }

func resourceType() *cel.Type { return cel.OpaqueType("kyverno.resource") }

// objectFunctions read and write objects. A policy of a namespace has them without the
// argument that names one.
func objectFunctions() []libraryFunction {
	gvr, body := resourceType(), objectType()
	list := []*cel.Type{textType(), textType(), textType()}
	of := func(has func(PolicyKind) bool, name string, result *cel.Type, f call, args ...*cel.Type) libraryFunction {
		return libraryFunction{names: both("resource", name), args: args, result: result, has: has, call: f}
	}
	return []libraryFunction{
		of(nil, "ToGVR", gvr, toResource, textType(), textType()),

		of(onlyCluster, "Get", body, getObject, append(list, textType())...),
		of(onlyCluster, "Get", body, getObject, gvr, textType(), textType()),
		of(onlyCluster, "List", body, listObjects, list...),
		of(onlyCluster, "List", body, listObjects, append(list, pairsType())...),
		of(onlyCluster, "List", body, listObjects, gvr, textType()),
		of(onlyCluster, "List", body, listObjects, gvr, textType(), pairsType()),
		of(onlyCluster, "Post", body, postObject, append(list, body)...),
		of(onlyCluster, "Post", body, postClusterObject, textType(), textType(), body),

		of(onlyNamespaced, "Get", body, own(getObject), textType(), textType(), textType()),
		of(onlyNamespaced, "Get", body, own(getObject), gvr, textType()),
		of(onlyNamespaced, "List", body, own(listObjects), textType(), textType()),
		of(onlyNamespaced, "List", body, own(listObjects), textType(), textType(), pairsType()),
		of(onlyNamespaced, "List", body, own(listObjects), gvr),
		of(onlyNamespaced, "List", body, own(listObjects), gvr, pairsType()),
		of(onlyNamespaced, "Post", body, own(postObject), textType(), textType(), body),
	}
}

// own is a function with the policy's namespace as an argument, behind the resource.
func own(f call) call {
	return func(w asker, args []any) (any, error) {
		at := 2
		if _, ok := args[0].(resource); ok {
			at = 1
		}
		return f(w, slices.Insert(slices.Clone(args), at, any(w.namespace)))
	}
}

// resourceOf takes the resource off the arguments: two texts, or one value.
func resourceOf(args []any) (resource, []any) {
	if r, ok := args[0].(resource); ok {
		return r, args[1:]
	}
	return resource{args[0].(string), args[1].(string)}, args[2:]
}

// toResource is the resource of a kind.
func toResource(w asker, args []any) (any, error) {
	ctx, cancel := waiting()
	defer cancel()
	plural, err := w.Resource(ctx, args[0].(string), args[1].(string))
	return resource{args[0].(string), plural}, err
}

// getObject is an object; null where there is none.
func getObject(w asker, args []any) (any, error) {
	r, rest := resourceOf(args)
	plural, subresource, _ := strings.Cut(r.plural, "/")
	path := resource{r.apiVersion, plural}.path(rest[0].(string)) + "/" + url.PathEscape(rest[1].(string))
	if subresource != "" {
		path += "/" + url.PathEscape(subresource)
	}
	return w.ask(path, nil)
}

// listObjects is a list of objects, of one namespace or of all.
func listObjects(w asker, args []any) (any, error) {
	r, rest := resourceOf(args)
	path := r.path(rest[0].(string))
	if len(rest) > 1 {
		path += "?labelSelector=" + url.QueryEscape(selector(rest[1].(map[string]any)))
	}
	found, err := w.ask(path, nil)
	if err == nil && found == nil {
		return nil, fmt.Errorf("there is no resource %s of %s", r.plural, r.apiVersion)
	}
	return found, err
}

func postClusterObject(w asker, args []any) (any, error) {
	return postObject(w, slices.Insert(slices.Clone(args), 2, any("")))
}

// postObject writes an object, as a review is asked for.
func postObject(w asker, args []any) (any, error) {
	r, rest := resourceOf(args)
	object := rest[1].(map[string]any)
	path := resource{r.apiVersion, r.plural}.path(rest[0].(string))
	if plural, subresource, ok := strings.Cut(r.plural, "/"); ok {
		metadata, _ := object["metadata"].(map[string]any)
		name, _ := metadata["name"].(string)
		if name == "" {
			return nil, errors.New("what is written to a subresource needs a name")
		}
		path = resource{r.apiVersion, plural}.path(rest[0].(string)) + "/" + url.PathEscape(name) + "/" + url.PathEscape(subresource)
	}
	body, err := json.Marshal(object)
	if err != nil {
		return nil, err
	}
	found, err := w.ask(path, body)
	if err == nil && found == nil {
		return nil, fmt.Errorf("there is no resource %s of %s", r.plural, r.apiVersion)
	}
	return found, err
}

// ask asks the API server; nil is what it does not have.
func (w asker) ask(path string, body []byte) (any, error) {
	ctx, cancel := waiting()
	defer cancel()
	answer, found, err := w.API(ctx, path, body)
	if err != nil || !found {
		return nil, err
	}
	var value any
	if err := kjson.Unmarshal(answer, &value); err != nil {
		return nil, fmt.Errorf("the answer is no JSON: %w", err)
	}
	return value, nil
}

// path is where the API server has the objects, of a namespace if there is one.
func (r resource) path(namespace string) string {
	root := "/apis/"
	if !strings.Contains(r.apiVersion, "/") {
		root = "/api/"
	}
	path := root + r.apiVersion
	if namespace != "" {
		path += "/namespaces/" + url.PathEscape(namespace)
	}
	return path + "/" + url.PathEscape(r.plural)
}

// selector is labels as a query has them.
func selector(labels map[string]any) string {
	var pairs []string
	for key, value := range labels {
		pairs = append(pairs, fmt.Sprintf("%s=%v", key, value))
	}
	slices.Sort(pairs)
	return strings.Join(pairs, ",")
}
