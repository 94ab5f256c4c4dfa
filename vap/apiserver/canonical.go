package apiserver

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
)

// Canonical is the object as the API server would hand it to CEL, apart from
// defaults: unknown fields and empty optional ones are gone, quantities and
// timestamps have their canonical form. Of an object whose kind is not built in, only the
// metadata is brought to that form. Fields of the wrong type are an error, as on a server.
//
// Zeroes that a Go struct always writes, such as resources: {} and a null
// creationTimestamp, are written only where the source has them. The options of a
// CONNECT have them all: nothing fills in or validates those before admission.
func Canonical(object map[string]any, gvk schema.GroupVersionKind) (map[string]any, error) {
	if object == nil || !scheme.Scheme.Recognizes(gvk) {
		return withCanonicalMetadata(object), nil
	}
	typed, err := scheme.Scheme.New(gvk)
	if err != nil {
		return nil, err
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object, typed); err != nil {
		return nil, fmt.Errorf("the object is no %s: %w", gvk.Kind, wrongField(object, typed, err))
	}
	typed.GetObjectKind().SetGroupVersionKind(gvk)
	out, err := runtime.DefaultUnstructuredConverter.ToUnstructured(typed)
	if err != nil {
		return nil, err
	}
	if _, err := meta.Accessor(typed); err == nil { // options have no metadata
		dropAdded(out, object)
	}
	return out, nil
}

// withCanonicalMetadata is a custom object with metadata as an API server writes them; as it is
// where they are of the wrong type.
func withCanonicalMetadata(object map[string]any) map[string]any {
	given, ok := object["metadata"].(map[string]any)
	var typed metav1.ObjectMeta
	if !ok || runtime.DefaultUnstructuredConverter.FromUnstructured(given, &typed) != nil {
		return object
	}
	metadata, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&typed)
	if err != nil {
		return object
	}
	dropAdded(metadata, given)
	out := maps.Clone(object)
	out["metadata"] = metadata
	return out
}

// wrongField is err, which does not say what field it is about, in words that do.
func wrongField(object map[string]any, typed runtime.Object, err error) error {
	text, unwritable := json.Marshal(object)
	wrong, ok := errors.AsType[*json.UnmarshalTypeError](json.Unmarshal(text, typed))
	if unwritable != nil || !ok || wrong.Field == "" {
		return err
	}
	hint := ""
	if wrong.Type.Kind() == reflect.String {
		switch {
		case wrong.Value == "bool":
			hint = ": y, yes, on, n, no and off without quotes are bools in YAML; put it in quotes"
		case strings.HasPrefix(wrong.Value, "number"):
			hint = "; put it in quotes"
		}
	}
	return fmt.Errorf("%s cannot be a %s%s", wrong.Field, wrong.Value, hint)
}

// dropAdded removes from out the zeroes, and the objects of nothing but zeroes,
// that source has not: a Go struct writes them for want of an omitempty.
func dropAdded(out, source map[string]any) {
	for key, v := range out {
		have, present := source[key]
		if !present && isZero(v) {
			delete(out, key)
			continue
		}
		switch v := v.(type) {
		case map[string]any:
			sub, _ := have.(map[string]any)
			dropAdded(v, sub)
		case []any:
			items, _ := have.([]any)
			for i := range v {
				item, ok := v[i].(map[string]any)
				if !ok || i >= len(items) {
					continue
				}
				sub, _ := items[i].(map[string]any)
				dropAdded(item, sub)
			}
		}
	}
}

func isZero(v any) bool {
	switch v := v.(type) {
	case map[string]any:
		for _, sub := range v {
			if !isZero(sub) {
				return false
			}
		}
		return true
	case []any:
		return len(v) == 0
	case int64:
		return v == 0
	case string:
		return v == ""
	case bool:
		return !v
	}
	return v == nil
}
