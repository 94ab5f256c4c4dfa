package cellib

import (
	"fmt"
	"reflect"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
)

// maxDepth bounds how deep an argument is.
const maxDepth = 100

// goData is a CEL value as Go data.
func goData(v ref.Val, depth int) (any, error) {
	if depth > maxDepth {
		return nil, fmt.Errorf("the value is nested too deeply")
	}
	switch v := v.(type) {
	case types.Null:
		return nil, nil
	case types.Bool, types.Int, types.Double, types.String, types.Bytes, types.Timestamp, types.Duration:
		return v.Value(), nil
	case types.Uint:
		return int64(v), nil
	case opaque:
		return v.value, nil
	case traits.Lister:
		return listData(v, depth)
	case traits.Mapper:
		return mapData(v, depth)
	}
	return nil, fmt.Errorf("a value of type %s cannot be used here", v.Type().TypeName())
}

func listData(list traits.Lister, depth int) (any, error) {
	out := []any{}
	for it := list.Iterator(); it.HasNext() == types.True; {
		item, err := goData(it.Next(), depth+1)
		if err != nil {
			return nil, err
		}
		out = append(out, item)
	}
	return out, nil
}

func mapData(m traits.Mapper, depth int) (any, error) {
	out := map[string]any{}
	for it := m.Iterator(); it.HasNext() == types.True; {
		key := it.Next()
		name, ok := key.(types.String)
		if !ok {
			return nil, fmt.Errorf("the key %v of a map is no string", key)
		}
		item, err := goData(m.Get(key), depth+1)
		if err != nil {
			return nil, err
		}
		out[string(name)] = item
	}
	return out, nil
}

// toCEL is Go data as a CEL value.
func toCEL(value any) ref.Val {
	switch value := value.(type) {
	case image:
		return opaque{imageType(), value}
	case resource:
		return opaque{resourceType(), value}
	case client:
		return opaque{clientType(), value}
	}
	return types.DefaultTypeAdapter.NativeToValue(value)
}

// doubles are data with each number a double, as they are where upstream decodes JSON.
func doubles(value any) any {
	switch value := value.(type) {
	case int64:
		return float64(value)
	case int:
		return float64(value)
	case map[string]any:
		out := make(map[string]any, len(value))
		for k, v := range value {
			out[k] = doubles(v)
		}
		return out
	case []any:
		out := make([]any, len(value))
		for i, v := range value {
			out[i] = doubles(v)
		}
		return out
	}
	return value
}

// An opaque is a value of a type of Kyverno's own, of which only its methods are known.
// The Go value is comparable.
type opaque struct {
	of    *cel.Type
	value any
}

// ConvertToNative implements ref.Val.
func (o opaque) ConvertToNative(t reflect.Type) (any, error) {
	return nil, fmt.Errorf("a %s cannot become a %v", o.of.TypeName(), t)
}

// ConvertToType implements ref.Val.
func (o opaque) ConvertToType(t ref.Type) ref.Val {
	if t.TypeName() == types.TypeType.TypeName() {
		return o.of
	}
	return types.NewErr("a %s cannot become a %s", o.of.TypeName(), t.TypeName())
}

// Equal implements ref.Val.
func (o opaque) Equal(other ref.Val) ref.Val {
	p, ok := other.(opaque)
	return types.Bool(ok && p.value == o.value)
}

// Type implements ref.Val.
func (o opaque) Type() ref.Type { return o.of }

// Value implements ref.Val.
func (o opaque) Value() any { return o.value }
