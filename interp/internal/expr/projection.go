package expr

import (
	"fmt"
	"math"

	"github.com/kvap/kvap/interp/internal/datum"
	"github.com/kvap/kvap/jmespath"
)

// projection evaluates the right side for each element of the left, and drops
// nulls. What is not a list, or no map for .*, gives null.
func (ev *evaluator) projection(e *jmespath.Expr, v Value) (Value, error) {
	over, ok, err := ev.elements(e, v)
	if err != nil || !ok {
		return Value{}, err
	}
	collected, from := []any{}, listOf(over)
	for i, data := range over.Data.([]any) {
		element := Value{data, over.From.Element(i)}
		if e.Op == jmespath.Filter {
			selected, err := ev.lenient(e.Args[2], element)
			if err != nil {
				return Value{}, err
			}
			if IsFalse(selected.Data) {
				continue
			}
		}
		value, err := ev.lenient(e.Args[1], element)
		if err != nil {
			return Value{}, err
		}
		if value.Data != nil {
			if err := ev.make(elementSize); err != nil {
				return Value{}, err
			}
			collected = append(collected, value.Data)
			from.Add(value.From)
		}
	}
	return Value{collected, from.Provenance()}, nil
}

// elements are what a projection goes over. A list projection fails where its
// left side does, but for missing keys; the others give null for any error.
func (ev *evaluator) elements(e *jmespath.Expr, v Value) (Value, bool, error) {
	left, err := ev.lenient(e.Args[0], v)
	if err != nil {
		if e.Op == jmespath.Projection {
			return Value{}, false, err
		}
		return Value{}, false, ev.alive()
	}
	if e.Op == jmespath.ValueProjection {
		return ev.valuesOf(left)
	}
	list, ok := asList(left.Data)
	return Value{list, left.From}, ok, ev.spend(len(list))
}

// valuesOf are the elements of a value projection: the values, by key, and in
// front of them as many nulls. The nulls show only if the right side makes
// something of null: an extra result, or an error. The order of Kyverno's is
// random.
func (ev *evaluator) valuesOf(left Value) (Value, bool, error) {
	if s, ok := left.Data.(Scope); ok {
		value, err := whole(s)
		if err != nil {
			return Value{}, false, err
		}
		left.Data = value
	}
	m, ok := left.Data.(map[string]any)
	if !ok {
		return Value{}, false, nil
	}
	if err := ev.make(elementSize * len(m)); err != nil {
		return Value{}, false, err
	}
	values, from := make([]any, len(m), 2*len(m)), listOf(left)
	for range m {
		from.Add(left.From.Field(SomeElement))
	}
	for _, key := range datum.Keys(m) {
		values = append(values, m[key])
		from.Add(left.From.value(key))
	}
	return Value{values, from.Provenance()}, true, ev.spend(len(values))
}

// flatten takes the lists in a list apart, one level deep. Any error of its left
// side gives null.
func (ev *evaluator) flatten(e *jmespath.Expr, v Value) (Value, error) {
	left, err := ev.eval(e.Args[0], v)
	if err != nil {
		return Value{}, ev.alive()
	}
	list, ok := asList(left.Data)
	if !ok {
		return Value{}, nil
	}
	flat, from := []any{}, listOf(left)
	for i, item := range list {
		of := left.From.Element(i)
		inner, ok := asList(item)
		if !ok {
			inner = []any{item}
		}
		if err := ev.spend(len(inner)); err != nil {
			return Value{}, err
		}
		if err := ev.make(elementSize * len(inner)); err != nil {
			return Value{}, err
		}
		flat = append(flat, inner...)
		for n := range inner {
			if ok {
				from.Add(of.Element(n))
			} else {
				from.Add(of)
			}
		}
	}
	return Value{flat, from.Provenance()}, nil
}

func (ev *evaluator) slice(e *jmespath.Expr, v Value) (Value, error) {
	left, err := ev.eval(e.Args[0], v)
	if err != nil {
		return Value{}, err
	}
	list, ok := asList(left.Data)
	if !ok {
		return Value{}, nil
	}
	step := 1
	if e.Step != nil {
		step = *e.Step
	}
	if step == 0 {
		return Value{}, fmt.Errorf("the step of a slice cannot be 0")
	}
	start, stop := bounds(e, step, len(list))
	if err := ev.make(elementSize * max(0, (stop-start)/step)); err != nil {
		return Value{}, err
	}
	cut, from := []any{}, listOf(left)
	for i := start; (step > 0 && i < stop) || (step < 0 && i > stop); i += step {
		cut = append(cut, list[i])
		from.Add(left.From.Element(i))
		if step > 0 && i > math.MaxInt-step || step < 0 && i < math.MinInt-step {
			break
		}
	}
	return Value{cut, from.Provenance()}, ev.spend(len(cut))
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
