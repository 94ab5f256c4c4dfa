package merge

import (
	"fmt"
	"maps"
)

// A Matcher tells whether a value satisfies a pattern. Scalars are given as
// their texts.
type Matcher func(value, pattern any) (bool, error)

// directiveKey is the key of a patch that says how its map is merged.
const directiveKey = "$patch"

// Apply lays a patch over an object.
func Apply(object, patch map[string]any, match Matcher) (map[string]any, error) {
	b := &budget{nodes: maxNodes}
	resolved, err := (&resolver{match: match, budget: b}).mapping(patch, object)
	if _, ok := isMismatch(err); ok {
		resolved, err = nil, nil
	}
	if err != nil {
		return nil, err
	}
	switch directive, has, err := directiveOf(resolved); {
	case err != nil:
		return nil, err
	case has && directive != "merge":
		return nil, fmt.Errorf("the patch has %s: %s at its root; an object can only be merged", directiveKey, directive)
	}
	s := shapeOf(object)
	merged, err := (&merger{budget: b}).maps(object, resolved, s)
	if err != nil || s == nil {
		return merged, err
	}
	return tidyMap(merged, s), nil
}

// A merger lays resolved patches over values.
type merger struct{ budget *budget }

// A removal is the result of a patch that takes the value away.
type removal struct{}

// value merges a patch into what is there, which is nil if nothing is. The result
// is a removal where nothing is to be there afterwards.
func (m *merger) value(old, patch any, s *mergeSchema) (any, error) {
	if err := m.budget.spend(1); err != nil {
		return nil, err
	}
	switch p := patch.(type) {
	case nil:
		return removal{}, nil
	case map[string]any:
		return m.mapping(old, p, s)
	case *list:
		return m.list(old, p, s)
	}
	switch old.(type) {
	case map[string]any, []any:
		return nil, wrongKind(old, patch)
	case string:
		return textOf(patch), nil // a text stays one
	}
	return patch, nil
}

// mapping merges a map, as its directive says.
func (m *merger) mapping(old any, patch map[string]any, s *mergeSchema) (any, error) {
	directive, _, err := directiveOf(patch)
	if err != nil {
		return nil, err
	}
	was, isMap := old.(map[string]any)
	if old != nil && !isMap {
		return nil, wrongKind(old, patch)
	}
	switch directive {
	case "delete":
		return removal{}, nil
	case "replace":
		was = nil
	}
	return m.maps(was, patch, s)
}

// maps merges a map key by key.
func (m *merger) maps(old, patch map[string]any, s *mergeSchema) (map[string]any, error) {
	out := make(map[string]any, len(old)+len(patch))
	maps.Copy(out, old)
	for _, key := range sortedKeys(patch) {
		if key == directiveKey {
			continue
		}
		value, err := m.value(old[key], patch[key], s.field(key))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", key, err)
		}
		if _, gone := value.(removal); gone {
			delete(out, key)
			continue
		}
		out[key] = value
	}
	return out, nil
}

// directiveOf is the value of a map's $patch; it is merge where there is none.
func directiveOf(patch map[string]any) (directive string, has bool, err error) {
	v, has := patch[directiveKey]
	if !has {
		return "merge", false, nil
	}
	switch v {
	case "merge", "replace", "delete":
		return v.(string), true, nil
	}
	return "", true, fmt.Errorf("%s must be merge, replace or delete, not %v", directiveKey, v)
}

func wrongKind(old, patch any) error {
	return fmt.Errorf("wrong node kind: %s cannot be merged into %s", kindName(patch), kindName(old))
}

func kindName(v any) string {
	switch v.(type) {
	case map[string]any:
		return "a map"
	case []any, *list:
		return "a list"
	}
	return "a scalar"
}
