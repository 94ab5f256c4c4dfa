package cel

import (
	"math"
	"testing"

	celgo "github.com/google/cel-go/cel"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/apiserver/pkg/cel/environment"
	"k8s.io/apiserver/pkg/cel/library"
)

// env is where the API server of a release compiles the new expressions of a
// policy. It understands what the release before it does.
func env(t testing.TB, r Release) *celgo.Env {
	t.Helper()
	set, err := environment.MustBaseEnvSet(version.MajorMinor(1, uint(r-1))).Extend(environment.VersionedOptions{
		IntroducedVersion: version.MajorMinor(1, 0),
		EnvOptions: []celgo.EnvOption{
			celgo.Variable("object", celgo.DynType),
			celgo.Variable("oldObject", celgo.DynType),
			celgo.Variable("params", celgo.DynType),
			celgo.Variable("request", celgo.DynType),
			celgo.Variable("variables", celgo.MapType(celgo.StringType, celgo.DynType)),
			celgo.Variable("authorizer", library.AuthorizerType),
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return set.NewExpressionsEnv()
}

// compile is the checked expression, or nil if env does not accept it.
func compile(env *celgo.Env, text string) (*celgo.Ast, error) {
	ast, iss := env.Compile(text)
	return ast, iss.Err()
}

// names are field names and words that are apt to break a printer: keywords,
// macros, functions, labels as Kubernetes has them, and what is not a text.
func names() []string {
	return []string{
		"as", "break", "const", "continue", "else", "for", "function", "if", "import", "let", "loop",
		"package", "namespace", "return", "var", "void", "while", "in", "true", "false", "null",
		"has", "all", "exists", "exists_one", "existsOne", "map", "filter", "size", "type", "int",
		"string", "object", "variables", "optional", "sets", "ip", "orValue",
		"a", "A9", "_", "__result__", "@result", "a-b", "a.b", "a/b", "app.kubernetes.io/name", "9a",
		"", " ", "a b", "`", "`a`", "'", `"`, `'"`, `'''`, `"""`, `\`, `\\`, `\'`, `a\`, `\d+`, `^(a|b)\.c$`,
		"\n", "\r\n", "\t", "\x00", "\x7f", "\u00a0", "\u2028", "\ufeff", "é", "漢字", "🎉", "\U0010FFFF",
		"\xff", "a\xc3", "\xed\xa0\x80", "?", "$", "{{ x }}", "//", "r'a'", "b'a'", "%s",
	}
}

// Every name can be selected, looked for and be a literal on every release.
func TestNamesCompile(t *testing.T) {
	t.Parallel()
	for _, r := range []Release{31, 34, 37} {
		e := env(t, r)
		for _, name := range names() {
			o := Ident("object")
			for _, v := range []Value{
				o.Field(name).Field(name), o.Has(name).Value, o.Optional(name).Optional(name), o.Optional(name).OrValue(String(name)),
				o.Field(name).Has(name).Value, o.Field("a").Field(name).Eq(String(name)).Value, o.Field(name).StartsWith(String(name)).Value,
				Map(Entry{String(name), Bytes([]byte(name))}),
			} {
				for _, text := range []string{v.String(), v.Text(1)} {
					if _, err := compile(e, text); err != nil {
						t.Errorf("%s: %s\n%v", r, text, err)
					}
				}
			}
		}
	}
}

// A literal evaluates to the value it was made of.
func TestLiteralsEvaluate(t *testing.T) {
	e := env(t, Latest)
	for _, name := range names() {
		if got := eval(t, e, String(name).String(), nil); got != string([]rune(name)) {
			t.Errorf("%s: got %q, want %q", String(name), got, name)
		}
		if got := eval(t, e, Bytes([]byte(name)).String(), nil); string(got.([]byte)) != name {
			t.Errorf("%s: got %q, want %q", Bytes([]byte(name)), got, name)
		}
	}
	for _, f := range []float64{0, 1, -1, 0.5, 1e20, 1e21, -1e21, 1e-9, math.MaxFloat64, math.SmallestNonzeroFloat64, math.Inf(1), math.Inf(-1), 1 << 60} {
		if got := eval(t, e, Double(f).String(), nil); got != f {
			t.Errorf("%s: got %v, want %v", Double(f), got, f)
		}
	}
	if got := eval(t, e, Double(math.NaN()).String(), nil).(float64); !math.IsNaN(got) {
		t.Errorf("%s: got %v", Double(math.NaN()), got)
	}
	if got := eval(t, e, Double(math.Copysign(0, -1)).String(), nil).(float64); !math.Signbit(got) {
		t.Errorf("%s: got %v", Double(math.Copysign(0, -1)), got)
	}
	for _, i := range []int64{0, 1, -1, math.MaxInt64, math.MinInt64} {
		if got := eval(t, e, Int(i).String(), nil); got != i {
			t.Errorf("%s: got %v, want %d", Int(i), got, i)
		}
	}
	if got := eval(t, e, Uint(math.MaxUint64).String(), nil); got != uint64(math.MaxUint64) {
		t.Errorf("%s: got %v", Uint(math.MaxUint64), got)
	}
}

// eval is the value of an expression as Go has it.
func eval(t testing.TB, e *celgo.Env, text string, vars map[string]any) any {
	t.Helper()
	ast, err := compile(e, text)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	p, err := e.Program(ast)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	if vars == nil {
		vars = map[string]any{}
	}
	out, _, err := p.Eval(vars)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return out.Value()
}
