package cellib

import (
	"context"
	"fmt"
	"time"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
)

// A World is what functions ask outside.
type World interface {
	// API asks the API server for a path.
	API(ctx context.Context, path string) ([]byte, error)
	// Service asks a service; data, if not nil, is POSTed.
	Service(ctx context.Context, url string, headers map[string]string, data []byte) ([]byte, error)
	// Global is the data of a GlobalContextEntry.
	Global(ctx context.Context, name string) (any, error)
	// Metadata is what a registry knows of an image.
	Metadata(ctx context.Context, reference string) (map[string]any, error)
	// Image takes a reference apart.
	Image(reference string) (Image, error)
	// Call calls a function that policies have in JMESPath too.
	Call(name string, args ...any) (any, error)
	Now() time.Time
}

// patience is how long the World is waited for. CEL has no way to hand a deadline
// on to a function.
const patience = 10 * time.Second

// Options are the functions and macros, with Optionals.
func Options(w World) []cel.EnvOption {
	var out []cel.EnvOption
	out = append(out, Optionals()...)
	out = append(out, images(w)...)
	out = append(out, pure(w)...)
	return append(out, lookups(w)...)
}

// A call is a function on Go values.
type call func(args []any) (any, error)

// overload declares one form of a function.
func overload(name, id string, args []*cel.Type, result *cel.Type, f call) cel.EnvOption {
	return cel.Function(name, cel.Overload(id, args, result, cel.FunctionBinding(func(values ...ref.Val) ref.Val {
		plain := make([]any, len(values))
		for i, v := range values {
			native, err := data(v, 0)
			if err != nil {
				return types.NewErr("%s: argument %d: %v", name, i+1, err)
			}
			plain[i] = native
		}
		value, err := f(plain)
		if err != nil {
			return types.NewErr("%s: %v", name, err)
		}
		return types.DefaultTypeAdapter.NativeToValue(value)
	})))
}

// maxDepth bounds how deep an argument is.
const maxDepth = 100

// data is a CEL value as Go data.
func data(v ref.Val, depth int) (any, error) {
	if depth > maxDepth {
		return nil, fmt.Errorf("the value is nested too deeply")
	}
	switch v := v.(type) {
	case types.Null:
		return nil, nil
	case types.Bool, types.Int, types.Double, types.String, types.Timestamp, types.Duration:
		return v.Value(), nil
	case types.Uint:
		return int64(v), nil
	}
	if list, ok := v.(lister); ok {
		return listData(list, depth)
	}
	if m, ok := v.(mapper); ok {
		return mapData(m, depth)
	}
	return nil, fmt.Errorf("a value of type %s cannot be used here", v.Type().TypeName())
}
