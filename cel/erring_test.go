package cel

import "testing"

// What evaluates a value is an error wherever that is one; what may go around it, or
// hides its error, does not.
func TestEvaluates(t *testing.T) {
	v := parse(t, "variables.v")
	for text, want := range map[string]bool{
		"variables.v == 1":                                true,
		"string(variables.v).matches('a')":                true,
		"(variables.v == 1 ? 'a' : 'b') == 'a'":           true,
		"(a == 1 ? variables.v : 2) == 2":                 false,
		"variables.v == 1 || a == 1":                      false,
		"variables.v == 1 && a == 1":                      false,
		"variables.v == 1 && (a == variables.v)":          true,
		"variables.v == 1 || has(variables.v.a)":          true,
		"variables.v.exists(x, x == 1)":                   true,
		"a.exists(x, x == variables.v)":                   false,
		"optional.of(1).orValue(variables.v) == 1":        false,
		"optional.of(variables.v).orValue(1) == 1":        true,
		"variables.w == 1":                                false,
		"[1, variables.v] == [1, 2]":                      true,
		"!(variables.v == 1 || type(variables.v) == int)": true,
	} {
		if got := parse(t, text).AsBool().Evaluates(v); got != want {
			t.Errorf("%s: %v, want %v", text, got, want)
		}
	}
}
