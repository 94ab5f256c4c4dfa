package judge

import (
	"fmt"
	"slices"
	"strings"

	"github.com/kvap/kvap/mutating"
)

// sharedKeys are the keys that several elements of a list have, by the path of the list.
type sharedKeys struct {
	lists []mutating.KeyedList
	ids   []map[string]bool // by list
	// refused tells of a list in which an API server wants them to differ, and to be there.
	refused bool
}

// sameKeys are the keys that several elements of some lists have, in one of the objects.
func sameKeys(lists []mutating.KeyedList, objects ...any) sharedKeys {
	out := sharedKeys{lists: lists, ids: make([]map[string]bool, len(lists))}
	for i, list := range lists {
		out.ids[i] = map[string]bool{}
		for _, object := range objects {
			eachList(object, list.Path, func(elements []any) []any {
				seen := map[string]bool{}
				for _, e := range elements {
					id := idOf(e, list.Keys)
					if id != "" && seen[id] {
						out.ids[i][id], out.refused = true, out.refused || list.Unique
					}
					out.refused = out.refused || list.Unique && idOf(e, list.Keys[:1]) == ""
					seen[id] = true
				}
				return elements
			})
		}
	}
	return out
}

// without is an object without the elements of these keys.
func (s sharedKeys) without(object map[string]any) any {
	var out any = object
	for i, list := range s.lists {
		if len(s.ids[i]) > 0 {
			out = eachList(out, list.Path, func(elements []any) []any {
				return slices.DeleteFunc(slices.Clone(elements), func(e any) bool { return s.ids[i][idOf(e, list.Keys)] })
			})
		}
	}
	return out
}

// eachList is a value with what becomes of its lists at a path.
func eachList(v any, path []string, becomes func([]any) []any) any {
	list, isList := v.([]any)
	fields, isMap := v.(map[string]any)
	switch {
	case len(path) == 0 && isList:
		return becomes(list)
	case len(path) > 0 && path[0] == mutating.Element && isList:
		out := make([]any, len(list))
		for i, e := range list {
			out[i] = eachList(e, path[1:], becomes)
		}
		return out
	case len(path) > 0 && isMap && fields[path[0]] != nil:
		out := make(map[string]any, len(fields))
		for key, field := range fields {
			out[key] = field
		}
		out[path[0]] = eachList(fields[path[0]], path[1:], becomes)
		return out
	}
	return v
}

// idOf is a text that elements of the same key have in common; "" for one without a key.
func idOf(e any, keys []string) string {
	if text, ok := e.(string); ok && len(keys) == 0 {
		return text
	}
	fields, _ := e.(map[string]any)
	var id strings.Builder
	for _, key := range keys {
		if v := fields[key]; v != nil && v != "" {
			fmt.Fprintf(&id, "%s: %v\n", key, v)
		}
	}
	return id.String()
}
