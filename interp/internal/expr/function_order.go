package expr

import (
	"errors"
	"slices"
	"strings"

	"github.com/kvap/kvap/interp/internal/datum"
)

// orderedKeys tells whether all keys are numbers, or all are strings.
func orderedKeys(keys []any) error {
	if allAre(keys, datum.IsNumber) || allAre(keys, isString) {
		return nil
	}
	return errors.New("invalid type, the keys must all be numbers or all be strings")
}

// compareKeys orders two numbers or two strings.
func compareKeys(a, b any) int {
	if s, ok := a.(string); ok {
		t, _ := b.(string)
		return strings.Compare(s, t)
	}
	return datum.Compare(a, b)
}

// best is the first of the greatest, or least, elements; null of none.
func best(list []any, greatest bool) any {
	i := bestIndex(list, greatest)
	if i < 0 {
		return nil
	}
	return list[i]
}

func bestIndex(keys []any, greatest bool) int {
	found := -1
	for i, key := range keys {
		if found < 0 {
			found = i
			continue
		}
		if c := compareKeys(key, keys[found]); greatest && c == 1 || !greatest && c == -1 {
			found = i
		}
	}
	return found
}

// bestBy is max_by and min_by. The key of a single element is not looked at.
func (ev *evaluator) bestBy(args []any, greatest bool) (any, error) {
	list, err := plainList(args[0])
	if err != nil {
		return nil, err
	}
	if len(list) < 2 {
		return best(list, greatest), nil
	}
	keys, err := ev.each(args[1], list)
	if err == nil {
		err = orderedKeys(keys)
	}
	if err != nil {
		return nil, err
	}
	return list[bestIndex(keys, greatest)], nil
}

func reverse(_ *evaluator, args []any) (any, error) {
	if s, ok := args[0].(string); ok {
		runes := []rune(s)
		slices.Reverse(runes)
		return string(runes), nil
	}
	list, err := plainList(args[0])
	if err != nil {
		return nil, err
	}
	out := slices.Clone(list)
	slices.Reverse(out)
	return out, nil
}

func sortList(_ *evaluator, args []any) (any, error) {
	out := slices.Clone(args[0].([]any))
	slices.SortStableFunc(out, compareKeys)
	return out, nil
}

// sortBy sorts a copy; Kyverno sorts the data itself. The key of a single element
// is not looked at. Only a key that the first element misses is a missing key to
// what stands around.
func sortBy(ev *evaluator, args []any) (any, error) {
	list, err := plainList(args[0])
	if err != nil || len(list) < 2 {
		return list, err
	}
	first, err := ev.each(args[1], list[:1])
	if err != nil {
		return nil, err
	}
	others, err := ev.each(args[1], list[1:])
	if err != nil {
		return nil, errors.New("error in sort_by comparison: " + err.Error())
	}
	keys := append(first, others...)
	if err := orderedKeys(keys); err != nil {
		return nil, err
	}
	order := make([]int, len(list))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return compareKeys(keys[a], keys[b]) })
	out := make([]any, len(list))
	for i, from := range order {
		out[i] = list[from]
	}
	return out, nil
}
