package interp

import (
	"context"
	"encoding/json"
)

// A toldWorld is a World with the namespace of a request as the request tells it.
type toldWorld struct {
	World
	name      string
	namespace map[string]any
}

// Namespace is the one that the request tells of, or another.
func (w toldWorld) Namespace(ctx context.Context, name string) (map[string]any, error) {
	if name == w.name {
		return w.namespace, nil
	}
	return w.World.Namespace(ctx, name)
}

// API answers for that namespace.
func (w toldWorld) API(ctx context.Context, path string, data []byte) ([]byte, error) {
	if data == nil && path == "/api/v1/namespaces/"+w.name {
		return json.Marshal(w.namespace)
	}
	return w.World.API(ctx, path, data)
}

// Format is what the world knows of a field.
func (w toldWorld) Format(group, version, kind string, field []string) Format {
	if typed, ok := w.World.(Typed); ok {
		return typed.Format(group, version, kind, field)
	}
	return AnyText
}
