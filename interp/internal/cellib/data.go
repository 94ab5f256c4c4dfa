package cellib

import (
	"fmt"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/traits"
)

type (
	lister = traits.Lister
	mapper = traits.Mapper
)

func listData(list lister, depth int) (any, error) {
	out := []any{}
	for it := list.Iterator(); it.HasNext() == types.True; {
		item, err := data(it.Next(), depth+1)
		if err != nil {
			return nil, err
		}
		out = append(out, item)
	}
	return out, nil
}

func mapData(m mapper, depth int) (any, error) {
	out := map[string]any{}
	for it := m.Iterator(); it.HasNext() == types.True; {
		key := it.Next()
		name, ok := key.(types.String)
		if !ok {
			return nil, fmt.Errorf("the key %v of a map is no string", key)
		}
		item, err := data(m.Get(key), depth+1)
		if err != nil {
			return nil, err
		}
		out[string(name)] = item
	}
	return out, nil
}
