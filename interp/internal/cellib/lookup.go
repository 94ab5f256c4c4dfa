package cellib

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/google/cel-go/cel"
	kjson "k8s.io/apimachinery/pkg/util/json"
)

// lookups are the functions that ask the API server, services and registries.
func lookups(outside World) []cel.EnvOption {
	w := asker{outside}
	texts := func(n int) []*cel.Type { return slices.Repeat([]*cel.Type{cel.StringType}, n) }
	object := cel.MapType(cel.StringType, cel.DynType)
	headers := cel.MapType(cel.StringType, cel.StringType)
	return []cel.EnvOption{
		overload("resource.Get", "resource_get", texts(4), object, func(args []any) (any, error) {
			return w.get(objectPath(args[0], args[1], args[2]) + "/" + url.PathEscape(args[3].(string)))
		}),
		overload("resource.List", "resource_list", texts(3), object, func(args []any) (any, error) {
			return w.get(objectPath(args[0], args[1], args[2]))
		}),
		overload("resource.List", "resource_list_labels", append(texts(3), headers), object, func(args []any) (any, error) {
			return w.get(objectPath(args[0], args[1], args[2]) + "?labelSelector=" + url.QueryEscape(selector(args[3])))
		}),
		overload("globalContext.Get", "global_context_get", texts(2), cel.DynType, func(args []any) (any, error) {
			return w.global(args[0].(string), args[1].(string))
		}),
		overload("image.GetMetadata", "image_get_metadata", texts(1), object, func(args []any) (any, error) {
			ctx, cancel := context.WithTimeout(context.Background(), patience)
			defer cancel()
			return w.Metadata(ctx, args[0].(string))
		}),
		overload("http.Get", "http_get", texts(1), cel.DynType, func(args []any) (any, error) { return w.ask(args[0], nil, nil) }),
		overload("http.Get", "http_get_headers", append(texts(1), headers), cel.DynType, func(args []any) (any, error) {
			return w.ask(args[0], args[1], nil)
		}),
		overload("http.Post", "http_post", append(texts(1), cel.DynType), cel.DynType, func(args []any) (any, error) {
			return w.post(args[0], nil, args[1])
		}),
		overload("http.Post", "http_post_headers", append(texts(1), cel.DynType, headers), cel.DynType, func(args []any) (any, error) {
			return w.post(args[0], args[2], args[1])
		}),
	}
}

// An asker asks the World, and waits only so long.
type asker struct{ World }

// get asks the API server for an object or a list.
func (w asker) get(path string) (any, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	answer, err := w.API(ctx, path)
	if err != nil {
		return nil, err
	}
	return read(answer)
}

func (w asker) global(name, projection string) (any, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if projection != "" {
		name += "." + projection
	}
	return w.Global(ctx, name)
}

func (w asker) ask(address, headers any, body []byte) (any, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	var fields map[string]string
	if m, ok := headers.(map[string]any); ok {
		fields = map[string]string{}
		for key, value := range m {
			fields[key], _ = value.(string)
		}
	}
	answer, err := w.Service(ctx, address.(string), fields, body)
	if err != nil {
		return nil, err
	}
	return read(answer)
}

func (w asker) post(address, headers, value any) (any, error) {
	body, err := json.Marshal(value)
	if err != nil {
		return nil, err
	}
	return w.ask(address, headers, body)
}

func read(answer []byte) (any, error) {
	var value any
	if err := kjson.Unmarshal(answer, &value); err != nil {
		return nil, fmt.Errorf("the answer is no JSON: %w", err)
	}
	return value, nil
}

// objectPath is where the API server has the objects of a resource.
func objectPath(apiVersion, resource, namespace any) string {
	root := "/apis/"
	if !strings.Contains(apiVersion.(string), "/") {
		root = "/api/"
	}
	path := root + apiVersion.(string)
	if namespace != "" {
		path += "/namespaces/" + url.PathEscape(namespace.(string))
	}
	return path + "/" + url.PathEscape(resource.(string))
}

// selector is labels as a query has them.
func selector(labels any) string {
	var pairs []string
	for key, value := range labels.(map[string]any) {
		pairs = append(pairs, fmt.Sprintf("%s=%v", key, value))
	}
	slices.Sort(pairs)
	return strings.Join(pairs, ",")
}
