package expr

import (
	"fmt"
	"math"

	"github.com/kvap/kvap/interp/internal/datum"
	"github.com/kvap/kvap/jmespath"
)

// projection evaluates the right side for each element of the left, and drops
// nulls. What is not a list, or no map for .*, gives null.
func (ev *evaluator) projection(e *jmespath.Expr, v any) (any, error) {
	elements, ok, err := ev.elements(e, v)
	if err != nil || !ok {
		return nil, err
	}
	collected := []any{}
	for _, element := range elements {
		if e.Op == jmespath.Filter {
			selected, err := ev.lenient(e.Args[2], element)
			if err != nil {
				return nil, err
			}
			if IsFalse(selected) {
				continue
			}
		}
		value, err := ev.lenient(e.Args[1], element)
		if err != nil {
			return nil, err
		}
		if value != nil {
			if err := ev.make(elementSize); err != nil {
				return nil, err
			}
			collected = append(collected, value)
		}
	}
	return collected, nil
}

// elements are what a projection goes over. A list projection fails where its
// left side does, but for missing keys; the others give null for any error.
func (ev *evaluator) elements(e *jmespath.Expr, v any) ([]any, bool, error) {
	left, err := ev.lenient(e.Args[0], v)
	if err != nil {
		if e.Op == jmespath.Projection {
			return nil, false, err
		}
		return nil, false, ev.alive()
	}
	if e.Op == jmespath.ValueProjection {
		return ev.valuesOf(left)
	}
	list, ok := asList(left)
	return list, ok, ev.spend(len(list))
}

// valuesOf are the elements of a value projection: the values, by key, and in
// front of them as many nulls. The nulls show only if the right side makes
// something of null: an extra result, or an error. The order of Kyverno's is
// random.
func (ev *evaluator) valuesOf(left any) ([]any, bool, error) {
	if s, ok := left.(Scope); ok {
		value, err := whole(s)
		if err != nil {
			return nil, false, err
		}
		left = value
	}
	m, ok := left.(map[string]any)
	if !ok {
		return nil, false, nil
	}
	if err := ev.make(elementSize * len(m)); err != nil {
		return nil, false, err
	}
	values := make([]any, len(m), 2*len(m))
	for _, key := range datum.Keys(m) {
		values = append(values, m[key])
	}
	return values, true, ev.spend(len(values))
}

// flatten takes the lists in a list apart, one level deep. Any error of its left
// side gives null.
func (ev *evaluator) flatten(e *jmespath.Expr, v any) (any, error) {
	left, err := ev.eval(e.Args[0], v)
	if err != nil {
		return nil, ev.alive()
	}
	list, ok := asList(left)
	if !ok {
		return nil, nil
	}
	flat := []any{}
	for _, item := range list {
		inner, ok := asList(item)
		if !ok {
			inner = []any{item}
		}
		if err := ev.spend(len(inner)); err != nil {
			return nil, err
		}
		if err := ev.make(elementSize * len(inner)); err != nil {
			return nil, err
		}
		flat = append(flat, inner...)
	}
	return flat, nil
}

func (ev *evaluator) slice(e *jmespath.Expr, v any) (any, error) {
	left, err := ev.eval(e.Args[0], v)
	if err != nil {
		return nil, err
	}
	list, ok := asList(left)
	if !ok {
		return nil, nil
	}
	step := 1
	if e.Step != nil {
		step = *e.Step
	}
	if step == 0 {
		return nil, fmt.Errorf("the step of a slice cannot be 0")
	}
	start, stop := bounds(e, step, len(list))
	if err := ev.make(elementSize * max(0, (stop-start)/step)); err != nil {
		return nil, err
	}
	cut := []any{}
	for i := start; (step > 0 && i < stop) || (step < 0 && i > stop); i += step {
		cut = append(cut, list[i])
		if step > 0 && i > math.MaxInt-step || step < 0 && i < math.MinInt-step {
			break
		}
	}
	return cut, ev.spend(len(cut))
}

// bounds are where a slice of a list of n starts, and before what it stops.
func bounds(e *jmespath.Expr, step, n int) (start, stop int) {
	low, high := 0, n
	if step < 0 {
		low, high = -1, n-1
	}
	limit := func(bound *int, otherwise int) int {
		if bound == nil {
			return otherwise
		}
		i := *bound
		if i < 0 {
			i += n
		}
		return min(max(i, low), high)
	}
	if step < 0 {
		return limit(e.Start, high), limit(e.Stop, low)
	}
	return limit(e.Start, low), limit(e.Stop, high)
}

// An itemList is a list that items() made. Kyverno's is of another Go type than
// other lists, and some functions panic on it; here they err.
type itemList []any

// asList gives the elements of any list.
func asList(v any) ([]any, bool) {
	switch v := v.(type) {
	case []any:
		return v, true
	case itemList:
		return v, true
	}
	return nil, false
}

// withoutItems gives a value with plain lists for those of items().
func withoutItems(v any) any {
	switch v := v.(type) {
	case itemList:
		return []any(v)
	case []any:
		list := make([]any, len(v))
		for i, item := range v {
			list[i] = withoutItems(item)
		}
		return list
	case map[string]any:
		m := make(map[string]any, len(v))
		for key, item := range v {
			m[key] = withoutItems(item)
		}
		return m
	}
	return v
}
