package cel

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	celgo "github.com/google/cel-go/cel"
)

// The table agrees with what the API server's environments declare. The
// environments of all releases are made with one release of the CEL library
// here; what came with the library is left out.
func TestFirstReleaseAgreesWithEnvironments(t *testing.T) {
	for _, r := range Supported() {
		e := env(t, r)
		has := functions(e)
		for _, name := range slices.Sorted(maps.Keys(functions(env(t, Latest+1)))) {
			if broughtAlong(name) {
				continue
			}
			if got, want := FirstRelease(name, 2) <= r, has[name]; got != want {
				t.Errorf("%s: %s is usable: %v, want %v", r, name, got, want)
			}
		}
		for _, m := range e.Macros() {
			if broughtAlong(m.Function()) {
				continue
			}
			if got := FirstRelease(m.Function(), m.ArgCount()); got > r {
				t.Errorf("%s: macro %s with %d arguments: usable from %s", r, m.Function(), m.ArgCount(), got)
			}
		}
	}
}

// What has a name of its own is known: an operator to CEL's parser, a macro by how
// many variables it binds, a function to some release.
func TestNamesAreKnown(t *testing.T) {
	for name, text := range constants(t, "operator.go", "Operator") {
		if _, err := Parse("a " + text + " b"); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, text := range constants(t, "operator.go", "MacroName") {
		if _, isMacro := MacroName(text).variables(3); !isMacro {
			if _, isMacro = MacroName(text).variables(2); !isMacro {
				t.Errorf("%s: %q binds nothing", name, text)
			}
		}
		if min(FirstRelease(text, 2), FirstRelease(text, 3)) == Never {
			t.Errorf("%s: no release has %q", name, text)
		}
	}
	for name, text := range constants(t, "functions.go", "Function") {
		if FirstRelease(text, 1) == Never {
			t.Errorf("%s: no release has %q", name, text)
		}
	}
}

// constants are the exported constants of a type, and their texts.
func constants(t *testing.T, file, typ string) map[string]string {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for _, d := range f.Decls {
		g, ok := d.(*ast.GenDecl)
		if !ok || g.Tok != token.CONST {
			continue
		}
		for _, s := range g.Specs {
			v := s.(*ast.ValueSpec)
			of, ok := v.Type.(*ast.Ident)
			if !ok || of.Name != typ || !v.Names[0].IsExported() {
				continue
			}
			text, err := strconv.Unquote(v.Values[0].(*ast.BasicLit).Value)
			if err != nil {
				t.Fatal(err)
			}
			out[v.Names[0].Name] = text
		}
	}
	if len(out) == 0 {
		t.Fatalf("%s has no constants of type %s", file, typ)
	}
	return out
}

func broughtAlong(name string) bool {
	switch name {
	case "first", "last", "optional.unwrap", "unwrapOpt", "existsOne", "@indexOf":
		return true
	}
	return false
}

// functions are those with a name that an expression can write.
func functions(e *celgo.Env) map[string]bool {
	names := map[string]bool{}
	for name := range e.Functions() {
		if !strings.ContainsAny(name[:1], "_-!") && !strings.Contains(name, "@") && name != "in" {
			names[name] = true
		}
	}
	return names
}

func TestFirstReleaseOfExpressions(t *testing.T) {
	for _, tt := range []struct {
		text string
		want Release
	}{
		{`object.a.exists(x, x == 1)`, 30},
		{`object.a.exists(i, x, x == i)`, 33},
		{`object.a.?b.orValue(isIP('a') ? 'b' : 'c')`, 31},
		{`object.a.sortBy(x, x)[0].matches('a')`, 35},
		{`format.dns1123Label().validate(object.a).hasValue()`, 32},
		{`Object{a: 1}`, 34},
		{`math.greatest(1, 2) > 1`, Never},
		{`cel.bind(x, 1, x)`, Never},
	} {
		if got := parse(t, tt.text).FirstRelease(); got != tt.want {
			t.Errorf("%s: needs %s, want %s", tt.text, got, tt.want)
		}
	}
}

func TestParseRelease(t *testing.T) {
	for text, want := range map[string]Release{
		"1.34": 34, "v1.30": 30, "v1.36.3": 36, "v1.34.2+k3s1": 34, "1.33+": 33,
		"": 0, "1": 0, "2.0": 0, "1.x": 0, "1.-3": 0, "1.": 0, "1.+3": 0,
	} {
		got, err := ParseRelease(text)
		if got != want || (err == nil) != (want != 0) {
			t.Errorf("%q: got %s, %v, want %s", text, got, err, want)
		}
	}
}
