package cel

import (
	"fmt"
	"slices"
	"testing"

	celgo "github.com/google/cel-go/cel"

	"github.com/kvap/kvap/internal/textdiff"
)

func TestIdents(t *testing.T) {
	for _, tt := range []struct {
		text string
		want []string
	}{
		{`object.a.all(x, x.b == params.c && variables.d)`, []string{"object", "params", "variables"}},
		{`x.all(x, x) && x`, []string{"x"}},
		{`a.map(x, y, z).exists(i, v, i + v == w)`, []string{"a", "w", "y", "z"}},
		{`sets.contains(a, optional.of(b).orValue([]))`, []string{"a", "b"}},
		{`size('a') == 1`, nil},
	} {
		if d := textdiff.Values(tt.want, parse(t, tt.text).Idents()); d != "" {
			t.Errorf("%s (-want +got):\n%s", tt.text, d)
		}
	}
}

func TestUses(t *testing.T) {
	for _, tt := range []struct {
		text   string
		prefix []string
		want   []string
		all    bool
	}{
		{`variables.a && has(variables.b) && variables['c-d'].e || variables.?f.orValue(x.variables.g)`, []string{"variables"}, []string{"a", "b", "c-d", "f"}, false},
		{`[1].all(variables, variables.a)`, []string{"variables"}, nil, false},
		{`object.metadata.labels['a'] == 'b' && object.metadata.name != 'x'`, []string{"object", "metadata"}, []string{"labels", "name"}, false},
		{`size(object.metadata.labels) + object.metadata.labels.x`, []string{"object", "metadata", "labels"}, []string{"x"}, true},
		{`object[x] == 1`, []string{"object"}, nil, true},
	} {
		v := parse(t, tt.text)
		if d := textdiff.Values(tt.want, v.Uses(tt.prefix...)); d != "" {
			t.Errorf("%s: uses of %v (-want +got):\n%s", tt.text, tt.prefix, d)
		}
		if got := v.UsesAll(tt.prefix...); got != tt.all {
			t.Errorf("%s: uses all of %v: %v", tt.text, tt.prefix, got)
		}
	}
}

func TestCalls(t *testing.T) {
	var got []string
	parse(t, `has(a.b) && a.all(x, y, size(x) > 1) && 'a'.matches('b') && sets.contains([], [])`).
		Calls(func(name string, args int) { got = append(got, fmt.Sprint(name, args)) })
	if want := []string{"has1", "all3", "size1", "matches1", "sets.contains2"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestSubstitute(t *testing.T) {
	for _, tt := range []struct{ text, name, with, want string }{
		{`a.b + a`, "a", `x + 1`, `(x + 1).b + (x + 1)`},
		{`l.all(a, a == 1) && a`, "a", `b`, `l.all(a, a == 1) && b`},
		{`a.all(a, a == 1)`, "a", `b`, `b.all(a, a == 1)`},
		{`l.all(x, x == a)`, "a", `x.y`, `l.all(x2, x2 == x.y)`},
		{`l.all(x, x == 1)`, "a", `x.y`, `l.all(x, x == 1)`},
		{`l.all(x, m.all(x2, x2 == a + x))`, "a", `x`, `l.all(x3, m.all(x2, x2 == x + x3))`},
		{`l.all(i, x, x == a && i == 1)`, "a", `i + x`, `l.all(i2, x2, x2 == i + x && i2 == 1)`},
		{`l.map(x, x > a, x)`, "a", `x`, `l.map(x2, x2 > x, x2)`},
	} {
		if got := parse(t, tt.text).Substitute(tt.name, parse(t, tt.with)).String(); got != tt.want {
			t.Errorf("%s with %s for %s\ngot  %s\nwant %s", tt.text, tt.with, tt.name, got, tt.want)
		}
	}
}

func TestSubstituteField(t *testing.T) {
	for _, tt := range []struct{ text, want string }{
		{`variables.a + variables['a'] + variables.b`, `x.y + x.y + variables.b`},
		{`has(variables.a) && variables.a.b && variables.?a.b`, `true && x.y.b && optional.of(x.y).b`},
		{`l.all(x, x == variables.a)`, `l.all(x2, x2 == x.y)`},
		{`l.all(variables, variables.a)`, `l.all(variables, variables.a)`},
	} {
		if got := parse(t, tt.text).SubstituteField("variables", "a", parse(t, "x.y")).String(); got != tt.want {
			t.Errorf("%s\ngot  %s\nwant %s", tt.text, got, tt.want)
		}
	}
	const text, want = `has(variables.a) && l.all(variables, variables.a) && variables['a'].b`, `has(variables.c) && l.all(variables, variables.a) && variables.c.b`
	if got := parse(t, text).RenameField("variables", "a", "c").String(); got != want {
		t.Errorf("%s\ngot  %s\nwant %s", text, got, want)
	}
}

func TestSubstitutePath(t *testing.T) {
	for _, tt := range []struct{ text, want string }{
		{`object.spec.template.spec.a == object.spec.b`, `x.spec.a == object.spec.b`},
		{`object['spec'].template.?metadata.hasValue()`, `x.?metadata.hasValue()`},
		{`has(object.spec.template.a)`, `has(x.a)`},
		{`has(object.spec.template) && object.?spec.template.hasValue() && object.spec.?template.hasValue()`, `has(object.spec.template) && object.?spec.template.hasValue() && object.spec.?template.hasValue()`},
		{`l.all(x, x == object.spec.template)`, `l.all(x2, x2 == x)`},
		{`l.all(object, object.spec.template)`, `l.all(object, object.spec.template)`},
	} {
		if got := parse(t, tt.text).SubstitutePath([]string{"object", "spec", "template"}, parse(t, "x")).String(); got != tt.want {
			t.Errorf("%s\ngot  %s\nwant %s", tt.text, got, tt.want)
		}
	}
}

func TestRewrite(t *testing.T) {
	v := parse(t, `a.b + [a.b, c].size()`).Rewrite(func(v Value) Value {
		if Equal(v, Ident("a").Field("b")) {
			return Ident("x")
		}
		return v
	})
	if got, want := v.String(), `x + [x, c].size()`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestCount(t *testing.T) {
	v := parse(t, `x.a + l.all(x, x == y) + x`)
	if x, y := v.Count("x"), v.Count("y"); x != 2 || y != 1 {
		t.Errorf("got %d and %d, want 2 and 1", x, y)
	}
}

// Has tells what is absent without an error wherever its comment says so.
func TestHasOnOtherTypes(t *testing.T) {
	e := env(t, Latest)
	for _, tt := range []struct {
		v    any
		want any
	}{{nil, false}, {"a", false}, {1, false}, {true, false}, {map[string]any{}, false}, {map[string]any{"a": nil}, true}, {[]any{"a"}, nil}} {
		p, err := e.Program(must(t, e, Ident("object").Has("a").String()))
		if err != nil {
			t.Fatal(err)
		}
		var got any
		if out := outcome(p, map[string]any{"object": tt.v}); out != nil {
			got = out.Value()
		}
		if got != tt.want {
			t.Errorf("has() of %v: got %v, want %v", tt.v, got, tt.want)
		}
	}
}

func must(t *testing.T, e *celgo.Env, text string) *celgo.Ast {
	t.Helper()
	ast, err := compile(e, text)
	if err != nil {
		t.Fatal(err)
	}
	return ast
}

func TestReadsField(t *testing.T) {
	for text, want := range map[string]bool{
		`request.operation == 'DELETE'`:              true,
		`request.?operation.orValue('') == 'DELETE'`: true,
		`string(request) == ''`:                      true,
		`'request.operation' == object.a`:            false,
		`[object].all(request, request.operation)`:   false,
		`request.operation ==`:                       false,
	} {
		if got := ReadsField(text, "request", "operation"); got != want {
			t.Errorf("%s: got %v", text, got)
		}
	}
}

func TestReceiver(t *testing.T) {
	v := parse(t, `object.Get('a') == 'resource.Get(' && size(resource.Get('b').c) > 0`)
	if got, ok := v.Receiver("Get"); !ok || got != "object" {
		t.Errorf("got %q", got)
	}
	if got, ok := v.Receiver("size"); ok {
		t.Errorf("size is called on %q", got)
	}
}
