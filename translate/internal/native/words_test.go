package native

import (
	"testing"

	celgo "github.com/google/cel-go/cel"

	"github.com/kvap/kvap/cel"
)

// The shortest form of a wildcard matches what the wildcard matches.
func TestMatches(t *testing.T) {
	for pattern, texts := range map[string]map[string]bool{
		"a":    {"a": true, "": false, "ab": false},
		"*":    {"": true, "a": true},
		"**":   {"": true, "a": true},
		"?*":   {"": false, "a": true, "ab": true},
		"*?":   {"": false, "a": true, "ab": true},
		"?":    {"": false, "a": true, "ab": false},
		"a*":   {"a": true, "ab": true, "ba": false},
		"*a":   {"a": true, "ba": true, "ab": false},
		"*a*":  {"a": true, "bab": true, "b": false},
		"a*b":  {"ab": true, "axb": true, "abc": false, "xab": false},
		"a?":   {"a": false, "ab": true, "abc": false},
		"a.*":  {"a.": true, "a.b": true, "ab": false},
		"a.?b": {"a.xb": true, "axxb": false},
	} {
		env, err := celgo.NewEnv(celgo.Variable("v", celgo.StringType))
		if err != nil {
			t.Fatal(err)
		}
		text := Matches(cel.Ident("v"), pattern).String()
		ast, issues := env.Compile(text)
		if issues.Err() != nil {
			t.Fatal(issues.Err())
		}
		program, err := env.Program(ast)
		if err != nil {
			t.Fatal(err)
		}
		for v, want := range texts {
			if got, _, err := program.Eval(map[string]any{"v": v}); err != nil || got.Value() != want {
				t.Errorf("%q matches %q: %v, want %v (%s)", pattern, v, got, want, text)
			}
		}
	}
}
