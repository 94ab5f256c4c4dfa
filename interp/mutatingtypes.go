package interp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/client-go/applyconfigurations"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/kube-openapi/pkg/spec3"
)

// builtinTypes are the types of Kubernetes itself. To read them takes a while, and they
// depend on nothing.
var builtinTypes = sync.OnceValue(func() managedfields.TypeConverter { return applyconfigurations.NewTypeConverter(scheme.Scheme) })

// typesAge is how long the types of an API group are believed: a definition may change.
const typesAge = time.Minute

// mergeTypes are those of objects that apply configurations are merged into: which lists have
// keys, and what is changed as a whole only. Those of custom kinds are the API server's.
type mergeTypes struct {
	mu     sync.Mutex
	served map[schema.GroupVersion]servedTypes
}

type servedTypes struct {
	managedfields.TypeConverter
	until time.Time
}

// of are the types for an object. What could not be read is asked for again the next time:
// a request that was given up says nothing of the types.
func (t *mergeTypes) of(ctx context.Context, w World, of schema.GroupVersionKind) (managedfields.TypeConverter, error) {
	stub := &unstructured.Unstructured{}
	stub.SetGroupVersionKind(of)
	if _, err := builtinTypes().ObjectToTyped(stub); err == nil {
		return builtinTypes(), nil
	}
	now, at := w.Now(), of.GroupVersion()
	t.mu.Lock()
	known, ok := t.served[at]
	t.mu.Unlock()
	if ok && now.Before(known.until) {
		return known.TypeConverter, nil
	}
	found, err := servedTypesOf(ctx, w, at)
	if err != nil {
		return nil, fmt.Errorf("error applying patch: type converter must not be nil: the types of %s are not known: %w", of, err) // as Kyverno, and why
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.served == nil {
		t.served = map[schema.GroupVersion]servedTypes{}
	}
	t.served[at] = servedTypes{found, now.Add(typesAge)}
	return found, nil
}

// servedTypesOf reads the types of an API group as the API server publishes them.
func servedTypesOf(ctx context.Context, w World, of schema.GroupVersion) (managedfields.TypeConverter, error) {
	text, err := w.API(ctx, "/openapi/v3/apis/"+of.String(), nil)
	if err != nil {
		return nil, err
	}
	var published spec3.OpenAPI
	if err := json.Unmarshal(text, &published); err != nil {
		return nil, err
	}
	if published.Components == nil {
		return nil, errors.New("the API server publishes none")
	}
	return managedfields.NewTypeConverter(published.Components.Schemas, false)
}
