package interp

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
)

// API gives the answer that was set for a path. Without one, a get or list is answered
// with the objects; a kind of which there are none is not known.
func (o *Offline) API(_ context.Context, path string, data []byte) ([]byte, error) {
	if answer, ok := o.Answers[path]; ok {
		return answer, nil
	}
	if at, ok := offlinePathOf(path); ok && data == nil {
		if answer := o.answer(at); answer != nil {
			return json.Marshal(answer)
		}
		if at.name != "" && o.Complete {
			return nil, fmt.Errorf("%s: %w", path, ErrNotFound)
		}
	}
	return nil, fmt.Errorf("there is no answer for %s; give the objects that it asks for, or a Context with the answer, with --param FILE (in a test: context)", path)
}

// An offlinePath is a get, or a list, of the API server.
type offlinePath struct {
	apiVersion, plural string
	namespace, name    string // empty for all
	labels             labels.Selector
	fields             fields.Selector
}

// offlinePathOf reads a path; ok is false for one that is neither.
func offlinePathOf(path string) (at offlinePath, ok bool) {
	bare, query, _ := strings.Cut(path, "?")
	parts := strings.Split(strings.Trim(bare, "/"), "/")
	switch {
	case len(parts) > 2 && parts[0] == "api":
		at.apiVersion, parts = parts[1], parts[2:]
	case len(parts) > 3 && parts[0] == "apis":
		at.apiVersion, parts = parts[1]+"/"+parts[2], parts[3:]
	default:
		return at, false
	}
	if len(parts) > 2 && parts[0] == "namespaces" {
		at.namespace, parts = parts[1], parts[2:]
	}
	at.plural = parts[0]
	if len(parts) > 1 {
		at.name = parts[1]
	}
	return at, len(parts) < 3 && at.selects(query)
}

// selects reads the selectors of a query; false for what else stands there.
func (at *offlinePath) selects(query string) bool {
	at.labels, at.fields = labels.Everything(), fields.Everything()
	values, err := url.ParseQuery(query)
	for key := range values {
		if err != nil {
			break
		}
		switch key {
		case "labelSelector":
			at.labels, err = labels.Parse(values.Get(key))
		case "fieldSelector":
			at.fields, err = fields.ParseSelector(values.Get(key))
		default:
			err = fmt.Errorf("%s is not known", key)
		}
	}
	return err == nil && (at.name == "" || query == "") && !slices.ContainsFunc(at.fields.Requirements(), func(r fields.Requirement) bool {
		return r.Field != "metadata.name" && r.Field != "metadata.namespace"
	})
}

// answer is the object, or the list, at a path; nil where nothing is known of it.
func (o *Offline) answer(at offlinePath) any {
	if o.Plural == nil {
		return nil
	}
	kind, list := "", []map[string]any{}
	for _, object := range o.Objects {
		apiVersion, its := digText(object, "apiVersion"), digText(object, "kind")
		if apiVersion != at.apiVersion || o.Plural(apiVersion, its) != at.plural {
			continue
		}
		kind = its
		namespace, name := metaText(object, "namespace"), metaText(object, "name")
		switch {
		case at.name != "" && at.name == name && at.namespace == namespace:
			return object
		case (at.namespace == "" || at.namespace == namespace) && at.labels.Matches(labels.Set(metaMap(object, "labels"))) &&
			at.fields.Matches(fields.Set{"metadata.name": name, "metadata.namespace": namespace}):
			list = append(list, object)
		}
	}
	if kind == "" || at.name != "" {
		return nil
	}
	slices.SortStableFunc(list, func(a, b map[string]any) int {
		return cmp.Or(cmp.Compare(metaText(a, "namespace"), metaText(b, "namespace")), cmp.Compare(metaText(a, "name"), metaText(b, "name")))
	})
	return map[string]any{"apiVersion": at.apiVersion, "kind": kind + "List", "metadata": map[string]any{}, "items": list}
}
