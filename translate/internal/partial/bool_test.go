package partial

import (
	"fmt"
	"testing"

	celgo "github.com/google/cel-go/cel"

	"github.com/kvap/kvap/cel"
)

// A truth is what a condition comes out as.
type truth int

const (
	no truth = iota
	yes
	fault
)

// TestCombinators tries each combinator on all cases of its operands, where one that errs
// has a Holds that is an error of CEL: whoever reads it is found out.
func TestCombinators(t *testing.T) {
	then := func(a truth, b truth) truth {
		if a == yes {
			return b
		}
		return a
	}
	not := func(a truth) truth { return [...]truth{yes, no, fault}[a] }
	or := func(a, b truth) truth { return not(then(not(a), not(b))) }
	for _, tt := range []struct {
		name string
		made func(a, b, c Bool) Bool
		want func(a, b, c truth) truth
	}{
		{"Not", func(a, _, _ Bool) Bool { return a.Not() }, func(a, _, _ truth) truth { return not(a) }},
		{"Then", func(a, b, _ Bool) Bool { return a.Then(b) }, func(a, b, _ truth) truth { return then(a, b) }},
		{"Else", func(a, b, _ Bool) Bool { return a.Else(b) }, func(a, b, _ truth) truth { return or(a, b) }},
		{"Both", func(a, b, _ Bool) Bool { return a.Both(b) }, func(a, b, _ truth) truth {
			if a == fault || b == fault {
				return fault
			}
			return min(a, b)
		}},
		{"All", func(a, b, c Bool) Bool { return All(a, b, c) }, func(a, b, c truth) truth { return then(a, then(b, c)) }},
		{"Any", func(a, b, c Bool) Bool { return Any(a, b, c) }, func(a, b, c truth) truth { return or(a, or(b, c)) }},
		{"OrFalse", func(a, _, _ Bool) Bool { return Sure(a.OrFalse()) }, func(a, _, _ truth) truth { return orFalse(a) }},
		{"nested", func(a, b, c Bool) Bool { return Any(All(a, b).Not(), c.Both(a)) }, func(a, b, c truth) truth {
			both := min(a, c)
			if a == fault || c == fault {
				both = fault
			}
			return or(not(then(a, b)), both)
		}},
	} {
		for n := range 27 {
			in := []truth{truth(n / 9), truth(n / 3 % 3), truth(n % 3)}
			made := tt.made(literal(in[0]), literal(in[1]), literal(in[2]))
			want := tt.want(in[0], in[1], in[2])
			if got := outcome(t, made); got != want {
				t.Errorf("%s of %v is %v, want %v", tt.name, in, got, want)
			}
			expr, errs := tt.made(read("a"), read("b"), read("c")).Native("key", nil)
			if got := evaluated(t, expr.Value, in); got != want || got == fault && !errs {
				t.Errorf("%s of %v is %v natively, want %v: %s", tt.name, in, got, want, expr)
			}
		}
	}
}

func orFalse(a truth) truth {
	if a == fault {
		return no
	}
	return a
}

// literal is a condition that comes out so; reading it where it errs is an error.
func literal(a truth) Bool {
	if a == fault {
		return Bool{cel.True(), Failing("hidden")}
	}
	return Sure(cel.Lit(a == yes))
}

// read is a condition on a key of o, and an error where that is missing.
func read(name string) Bool {
	o := cel.Ident("o")
	return Where(o.Has(name), o.Field(name).Eq(cel.String("yes")))
}

// outcome is what a condition on nothing comes out as.
func outcome(t *testing.T, b Bool) truth {
	t.Helper()
	switch evaluated(t, b.Errs.Value, nil) {
	case yes:
		return fault
	case fault:
		t.Fatalf("asking whether it errs is an error: %s", b.Errs)
	}
	return evaluated(t, b.Holds.Value, nil)
}

// evaluated is what CEL says of an expression about o, whose keys a, b, and c are missing
// where they err.
func evaluated(t *testing.T, v cel.Value, in []truth) truth {
	t.Helper()
	env, err := celgo.NewEnv(celgo.Variable("o", celgo.DynType))
	if err != nil {
		t.Fatal(err)
	}
	o := map[string]any{}
	for i, a := range in {
		if a != fault {
			o[string(rune('a'+i))] = map[truth]string{yes: "yes", no: "no"}[a]
		}
	}
	ast, issues := env.Compile(v.String())
	if issues.Err() != nil {
		t.Fatalf("%s: %v", v, issues.Err())
	}
	program, err := env.Program(ast)
	if err != nil {
		t.Fatal(err)
	}
	out, _, err := program.Eval(map[string]any{"o": o})
	if err != nil {
		return fault
	}
	switch fmt.Sprint(out.Value()) {
	case "true":
		return yes
	case "false":
		return no
	}
	t.Fatalf("%s is %v", v, out)
	return fault
}

// TestNative tells what of the needs is left where an expression asks by itself.
func TestNative(t *testing.T) {
	for _, tt := range []struct{ needs, holds, want string }{
		{`true`, `o.a == 1`, `o.a == 1`},
		{`false`, `o.a == 1`, `dyn({}).key == true`},
		{`has(o.a)`, `o.a == 1`, `o.a == 1`},
		{`has(o.a)`, `o.b == 1 || o.a == 1`, `has(o.a) ? o.b == 1 || o.a == 1 : dyn({}).key == true`},
		{`has(o.a) && has(o.a.b)`, `o.a.b == 1`, `o.a.b == 1`},
		{`has(o.a) && has(o.b)`, `o.a == 1`, `has(o.b) ? o.a == 1 : dyn({}).key == true`},
		{`has(o.a) && (type(o.a) != map || has(o.a.b))`, `type(o.a) == map && o.a.b == 1`, `type(o.a) == map && o.a.b == 1`},
		{`has(o.a) && type(o.a) == string`, `o.a.startsWith('x')`, `o.a.startsWith('x')`},
		{`has(o.a) && type(o.a) == string`, `type(o.a) == string && o.a.startsWith('x')`, `o.a.startsWith('x')`},
		{`has(o.a) && type(o.a) == string`, `size(o.a) > 1`, `type(o.a) == string ? size(o.a) > 1 : dyn({}).key == true`},
		{`type(o.a) == string || type(o.a) == list || type(o.a) == map`, `size(o.a) > 1`, `size(o.a) > 1`},
		{`o.c ? has(o.a) : has(o.b)`, `o.c ? o.a == 1 : o.b == 1`, `o.c ? o.a == 1 : o.b == 1`},
		{`'k' in o.a`, `o.a['k'] == 1`, `o.a['k'] == 1`},
		{`o.a != null`, `o.a.exists(x, x == 1)`, `o.a.exists(x, x == 1)`},
		{`o.a != null`, `o.a == 1`, `o.a != null ? o.a == 1 : dyn({}).key == true`},
		{`isQuantity(o.a)`, `quantity(o.a).isGreaterThan(quantity('1'))`, `quantity(o.a).isGreaterThan(quantity('1'))`},
	} {
		needs, err := cel.Parse(tt.needs)
		if err != nil {
			t.Fatal(err)
		}
		holds, err := cel.Parse(tt.holds)
		if err != nil {
			t.Fatal(err)
		}
		want, err := cel.Parse(tt.want)
		if err != nil {
			t.Fatal(err)
		}
		got, _ := Where(needs.AsBool(), holds.AsBool()).Native("key", nil)
		if got.String() != want.String() {
			t.Errorf("%s where %s: %s\nwant %s", tt.holds, tt.needs, got, want)
		}
	}
}
