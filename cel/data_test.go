package cel

import "testing"

func TestData(t *testing.T) {
	got := Data(map[string]any{
		"data": map[string]any{"b": "2", "a": "its"}, "n": int64(1), "l": []any{"x", nil, true, 0.5}, "e": map[string]any{},
	}).String()
	const want = `dyn({'data': dyn({'a': 'its', 'b': '2'}), 'e': dyn({}), 'l': dyn([dyn('x'), dyn(null), dyn(true), dyn(0.5)]), 'n': dyn(1)})`
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}
