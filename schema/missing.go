package schema

import (
	"fmt"
	"maps"
	"slices"
)

// Missing is the path of the first field that an object lacks although every object of the
// type has it, empty where it has all: an API server that is given the object without it
// fills it in, or refuses the object. CEL reads such a field without has().
func (t *Type) Missing(object map[string]any) string {
	return lackingIn(object, t, "", 0)
}

func lackingIn(value any, t *Type, path string, depth int) string {
	const deep = 30 // types may hold themselves
	if t == nil || depth > deep {
		return ""
	}
	switch value := value.(type) {
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(t.Fields)) {
			f, at := t.Fields[name], under(path, name)
			sub, present := value[name]
			if !present && (f.Required || f.Mandatory) {
				return at
			}
			if lacking := lackingIn(sub, f.Type, at, depth+1); lacking != "" {
				return lacking
			}
		}
		for _, key := range slices.Sorted(maps.Keys(value)) {
			if lacking := lackingIn(value[key], t.Elem, under(path, key), depth+1); lacking != "" {
				return lacking
			}
		}
	case []any:
		for i, item := range value {
			if lacking := lackingIn(item, t.Elem, fmt.Sprintf("%s[%d]", path, i), depth+1); lacking != "" {
				return lacking
			}
		}
	}
	return ""
}

func under(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}
