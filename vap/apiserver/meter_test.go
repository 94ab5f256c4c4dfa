package apiserver

import (
	"fmt"
	"testing"
)

func TestMeterReadsMapsInOneOrder(t *testing.T) {
	m, err := NewMeter()
	if err != nil {
		t.Fatal(err)
	}
	labels := map[string]any{}
	for i := range 30 {
		labels[fmt.Sprintf("key-%02d", i)] = []string{"w", "w", "x"}[i%3]
	}
	object := map[string]any{"labels": labels, "list": []any{map[string]any{"labels": labels}}}
	for _, text := range []string{
		`object.labels.exists(k, object.labels[k] == 'x')`,
		`object.labels.exists(k, v, v == 'x')`,
		`object.list.all(e, e.labels.exists(k, k.endsWith('3')))`,
		`[object.labels].all(e, e.exists(k, k.endsWith('3')))`,
		`{'a': object.labels}.all(a, v, v.exists(k, k.endsWith('3')))`,
		`{dyn('a'): 1, dyn('b'): 2, dyn('c'): 3, dyn(1): 4, dyn(2u): 5, dyn(true): 6}.exists(k, v, v == 3)`,
		`object.list.exists(e, {'a': 1, 'b': 2, 'c': 3, 'd': 4}.exists(k, v, v == 3))`,
		`object.labels.transformMap(k, v, v + k).exists(k, k.endsWith('3'))`,
		`object.labels.transformMapEntry(k, v, {k + 'z': v}).exists(k, v, k.endsWith('3z'))`,
		`variables.made.exists(k, k.endsWith('3'))`,
	} {
		vars := map[string]any{"object": object}
		made := m.Measure(`object.labels.transformMap(k, v, v)`, vars)
		vars["variables"] = map[string]any{"made": made.Value}
		first := m.Measure(text, vars)
		if first.Err != nil || first.Cost == 0 {
			t.Errorf("%s: cost %d, %v", text, first.Cost, first.Err)
		}
		for range 40 {
			if again := m.Measure(text, vars); again.Cost != first.Cost {
				t.Errorf("%s: cost %d, and then %d", text, first.Cost, again.Cost)
				break
			}
		}
	}
}

func TestMeterLeavesMapsWhatTheyAre(t *testing.T) {
	m, err := NewMeter()
	if err != nil {
		t.Fatal(err)
	}
	object := map[string]any{"labels": map[string]any{"a": "x", "b": "y"}, "empty": map[string]any{}}
	for _, text := range []string{
		`object.labels == {'a': 'x', 'b': 'y'} && {'b': 'y', 'a': 'x'} == object.labels`,
		`object.labels.size() == 2 && 'a' in object.labels && !('c' in object.labels)`,
		`object.?labels[?'c'].orValue('z') == 'z' && has(object.labels.a)`,
		`!optional.ofNonZeroValue(object.empty).hasValue() && optional.ofNonZeroValue(object.labels).hasValue()`,
		`object.labels.map(k, k) == ['a', 'b'] && object.labels.transformList(k, v, v) == ['x', 'y']`,
		`object.labels.transformMap(k, v, k != 'a', v) == {'b': 'y'}`,
		`type(object.labels) == map`,
		`{1: 2}[1] == 2 && {1: 2}[dyn(1u)] == 2 && dyn(1.0) in {1: 2}`,
	} {
		if r := m.Measure(text, map[string]any{"object": object}); r.Err != nil || fmt.Sprint(r.Value) != "true" {
			t.Errorf("%s: %v, %v", text, r.Value, r.Err)
		}
	}
}

func TestMeterCountsAsTheServerDoes(t *testing.T) {
	m, err := NewMeter()
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		text string
		want int64
	}{
		{`{'a': {'b': 'c'}}.a.b == 'c'`, 4},               // a constant costs nothing
		{`object.?b.orValue({}).size() == 0`, 3},          // nor does an empty one
		{`{'a': object.a}.a == 'x'`, 35},                  // to make a map costs 30
		{`object.m == {'k': 'x'}`, 3},                     // maps are compared at the cost of their size
		{`object.m.transformMap(k, v, v + 'y') == {}`, 8}, // an insertion costs 1
		{`variables.v.all(k, k == 'k') && object.m.all(k, k == 'k')`, 16},
	} {
		vars := map[string]any{"object": map[string]any{"a": "x", "m": map[string]any{"k": "x"}}}
		vars["variables"] = map[string]any{"v": m.Measure(`object.m`, vars).Value}
		if r := m.Measure(tt.text, vars); r.Err != nil || r.Cost != tt.want {
			t.Errorf("%s: cost %d, want %d (%v)", tt.text, r.Cost, tt.want, r.Err)
		}
	}
}
