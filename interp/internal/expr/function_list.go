package expr

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/kvap/kvap/interp/internal/datum"
	"github.com/kvap/kvap/jmespath"
)

// listFunction is the functions of lists and maps, and those of any value.
func listFunction(f jmespath.Func) function {
	switch f {
	case jmespath.FuncContains:
		return contains
	case jmespath.FuncItems:
		return items
	case jmespath.FuncJoin:
		return join
	case jmespath.FuncKeys:
		return func(_ *evaluator, args []any) (any, error) {
			return textList(datum.Keys(args[0].(map[string]any))), nil
		}
	case jmespath.FuncLabelMatch:
		return labelMatch
	case jmespath.FuncLength:
		return length
	case jmespath.FuncLookup:
		return lookup
	case jmespath.FuncMap:
		return mapList
	case jmespath.FuncMax, jmespath.FuncMin:
		return func(_ *evaluator, args []any) (any, error) { return best(args[0].([]any), f == jmespath.FuncMax), nil }
	case jmespath.FuncMaxBy, jmespath.FuncMinBy:
		return func(ev *evaluator, args []any) (any, error) { return ev.bestBy(args, f == jmespath.FuncMaxBy) }
	case jmespath.FuncMerge:
		return merge
	case jmespath.FuncNotNull:
		return firstNotNull
	case jmespath.FuncObjectFromLists:
		return objectFromLists
	case jmespath.FuncReverse:
		return reverse
	case jmespath.FuncSort:
		return sortList
	case jmespath.FuncSortBy:
		return sortBy
	case jmespath.FuncSum:
		return sumList
	case jmespath.FuncToArray:
		return toArray
	case jmespath.FuncType:
		return typeOf
	case jmespath.FuncValues:
		return values
	}
	return nil
}

// contains looks for a text in a text, or for an element in a list. Kyverno
// panics when it meets a map or list that it has to compare with another.
func contains(ev *evaluator, args []any) (any, error) {
	if text, ok := args[0].(string); ok {
		part, ok := args[1].(string)
		return ok && strings.Contains(text, part), nil
	}
	list, err := plainList(args[0])
	if err != nil {
		return nil, err
	}
	for _, item := range list {
		same, err := identical(item, args[1])
		if same || err != nil {
			return same, err
		}
	}
	return false, ev.spend(len(list))
}

// identical is Go's ==, but for numbers.
func identical(a, b any) (bool, error) {
	switch a.(type) {
	case map[string]any:
		if _, ok := b.(map[string]any); ok {
			return false, errors.New("maps cannot be compared here")
		}
		return false, nil
	case []any:
		if _, ok := b.([]any); ok {
			return false, errors.New("lists cannot be compared here")
		}
		return false, nil
	case itemList:
		return false, nil
	}
	switch b.(type) {
	case map[string]any, []any, itemList:
		return false, nil
	}
	return datum.Equal(a, b), nil
}

// items makes a list of maps from the entries of a map, by key, or of a list,
// with the index as the key.
func items(ev *evaluator, args []any) (any, error) {
	ev.items = true
	keyName, valueName := args[1].(string), args[2].(string)
	out := itemList{}
	switch from := args[0].(type) {
	case map[string]any:
		if err := ev.make(4 * entrySize * len(from)); err != nil {
			return nil, err
		}
		for _, key := range datum.Keys(from) {
			out = append(out, map[string]any{keyName: key, valueName: from[key]})
		}
	case []any:
		if err := ev.make(4 * entrySize * len(from)); err != nil {
			return nil, err
		}
		for i, item := range from {
			out = append(out, map[string]any{keyName: float64(i), valueName: item})
		}
	default:
		_, err := plainList(from)
		return nil, err
	}
	return out, ev.spend(len(out))
}

func join(_ *evaluator, args []any) (any, error) {
	separator, list := args[0].(string), args[1].([]any)
	texts := make([]string, len(list))
	size := 0
	for i, item := range list {
		texts[i] = item.(string)
		if size += len(texts[i]) + len(separator); size > maxTextSize {
			return nil, tooLong()
		}
	}
	return strings.Join(texts, separator), nil
}

// labelMatch tells whether every entry of the first map is in the second.
func labelMatch(_ *evaluator, args []any) (any, error) {
	labels := args[1].(map[string]any)
	selector := args[0].(map[string]any)
	for _, key := range datum.Keys(selector) {
		value, ok := labels[key]
		if !ok {
			return false, nil
		}
		same, err := identical(selector[key], value)
		if !same || err != nil {
			return false, err
		}
	}
	return true, nil
}

func length(_ *evaluator, args []any) (any, error) {
	switch v := args[0].(type) {
	case string:
		return float64(utf8.RuneCountInString(v)), nil
	case map[string]any:
		return float64(len(v)), nil
	}
	list, _ := asList(args[0])
	return float64(len(list)), nil
}

// lookup is a field or an element; null if there is none.
func lookup(_ *evaluator, args []any) (any, error) {
	switch from := args[0].(type) {
	case map[string]any:
		key, ok := args[1].(string)
		if !ok {
			return nil, errors.New("the key of a map must be a string")
		}
		return from[key], nil
	case []any:
		i, ok := datum.Whole(args[1])
		if !ok {
			return nil, errors.New("the index of a list must be a whole number")
		}
		if i < 0 || i >= int64(len(from)) {
			return nil, nil
		}
		return from[i], nil
	}
	_, err := plainList(args[0])
	return nil, err
}

func mapList(ev *evaluator, args []any) (any, error) {
	list, err := plainList(args[1])
	if err != nil {
		return nil, err
	}
	return ev.each(args[0], list)
}

// each evaluates an &expression for each element. A missing key is not taken as
// null.
func (ev *evaluator) each(by any, list []any) ([]any, error) {
	if err := ev.make(elementSize * len(list)); err != nil {
		return nil, err
	}
	out := make([]any, len(list))
	for i, item := range list {
		value, err := ev.eval(by.(expression).e, Value{Data: item})
		if err != nil {
			return nil, err
		}
		out[i] = value.Data
	}
	return out, nil
}

// merge puts the fields of maps together; the last wins. Kyverno checks no types
// here, and panics.
func merge(ev *evaluator, args []any) (any, error) {
	out := map[string]any{}
	for _, arg := range args {
		m := arg.(map[string]any)
		if err := ev.spend(len(m)); err != nil {
			return nil, err
		}
		if err := ev.make(entrySize * len(m)); err != nil {
			return nil, err
		}
		for key, value := range m {
			out[key] = value
		}
	}
	return out, nil
}

func firstNotNull(_ *evaluator, args []any) (any, error) {
	for _, arg := range args {
		if arg != nil {
			return arg, nil
		}
	}
	return nil, nil
}

// objectFromLists makes a map of keys and values; null where the values end.
func objectFromLists(_ *evaluator, args []any) (any, error) {
	keys, err := plainList(args[0])
	if err != nil {
		return nil, err
	}
	values, err := plainList(args[1])
	if err != nil {
		return nil, err
	}
	out := make(map[string]any, len(keys))
	for i, key := range keys {
		name, err := scalarText(key)
		if err != nil {
			return nil, fmt.Errorf("key %d: %w", i, err)
		}
		out[name] = nil
		if i < len(values) {
			out[name] = values[i]
		}
	}
	return out, nil
}

// sumList adds the elements up, whatever add takes.
func sumList(_ *evaluator, args []any) (any, error) {
	list, err := plainList(args[0])
	if err != nil {
		return nil, err
	}
	if len(list) == 0 {
		return nil, errors.New("at least one element is needed")
	}
	total := list[0]
	for _, item := range list[1:] {
		if total, err = arithmetic(jmespath.FuncAdd, total, item); err != nil {
			return nil, err
		}
	}
	return total, nil
}

// toArray puts a value in a list, unless it is one. That of items() counts as
// none.
func toArray(_ *evaluator, args []any) (any, error) {
	if list, ok := args[0].([]any); ok {
		return list, nil
	}
	return []any{args[0]}, nil
}

func typeOf(_ *evaluator, args []any) (any, error) {
	switch args[0].(type) {
	case nil:
		return "null", nil
	case bool:
		return "boolean", nil
	case int64, float64:
		return "number", nil
	case string:
		return "string", nil
	case map[string]any:
		return "object", nil
	}
	_, err := plainList(args[0])
	return "array", err
}

// values are the values of a map, by key.
func values(_ *evaluator, args []any) (any, error) {
	m := args[0].(map[string]any)
	out := make([]any, 0, len(m))
	for _, key := range datum.Keys(m) {
		out = append(out, m[key])
	}
	return out, nil
}
