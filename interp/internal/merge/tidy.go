package merge

import (
	"maps"
	"slices"
)

// tidy is a value with what Kyverno's merge does to all lists of built-in kinds,
// whether the patch names them or not: of elements with one key the last remains,
// where the first stood. Lists with elements that have no key stay as they are;
// Kyverno empties them from there on.
func tidy(v any, s *mergeSchema) any {
	if s == nil {
		return v
	}
	switch v := v.(type) {
	case map[string]any:
		return tidyMap(v, s)
	case []any:
		return tidyList(v, s)
	}
	return v
}

func tidyMap(m map[string]any, s *mergeSchema) map[string]any {
	out := maps.Clone(m)
	for key, field := range s.fields {
		if v, has := m[key]; has {
			out[key] = tidy(v, field)
		}
	}
	return out
}

func tidyList(list []any, s *mergeSchema) []any {
	if s.set {
		return union(list, nil)
	}
	out := make([]any, 0, len(list))
	places := make(map[string]int, len(list))
	for _, e := range list {
		m, ok := e.(map[string]any)
		if !ok || len(s.keys) == 0 || len(keyFields(m, s.keys)) == 0 {
			return tidyEach(list, s)
		}
		id := identity(m, s.keys)
		if at, has := places[id]; has {
			out[at] = tidy(e, s.element)
			continue
		}
		places[id] = len(out)
		out = append(out, tidy(e, s.element))
	}
	return out
}

func tidyEach(list []any, s *mergeSchema) []any {
	out := slices.Clone(list)
	for i, e := range out {
		out[i] = tidy(e, s.element)
	}
	return out
}
