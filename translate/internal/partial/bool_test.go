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

// TestCombinators tries each combinator on all cases of its operands, of which any may be one
// that never errs, against Kyverno's order of evaluation: as one expression, and told apart.
func TestCombinators(t *testing.T) {
	then := func(a truth, b truth) truth {
		if a == yes {
			return b
		}
		return a
	}
	not := func(a truth) truth { return [...]truth{yes, no, fault}[a] }
	or := func(a, b truth) truth { return not(then(not(a), not(b))) }
	both := func(a, b truth) truth {
		if a == fault || b == fault {
			return fault
		}
		return min(a, b)
	}
	condition := cel.Ident("o").Field("c").Eq(cel.String("yes"))
	for _, tt := range []struct {
		name string
		made func(a, b, c Bool) Bool
		want func(a, b, c truth) truth
	}{
		{"Not", func(a, _, _ Bool) Bool { return a.Not() }, func(a, _, _ truth) truth { return not(a) }},
		{"Then", func(a, b, _ Bool) Bool { return a.Then(b) }, func(a, b, _ truth) truth { return then(a, b) }},
		{"Else", func(a, b, _ Bool) Bool { return a.Else(b) }, func(a, b, _ truth) truth { return or(a, b) }},
		{"Implies", func(a, b, _ Bool) Bool { return a.Implies(b) }, func(a, b, _ truth) truth { return or(not(a), b) }},
		{"Both", func(a, b, _ Bool) Bool { return a.Both(b) }, func(a, b, _ truth) truth { return both(a, b) }},
		{"All", func(a, b, c Bool) Bool { return All(a, b, c) }, func(a, b, c truth) truth { return then(a, then(b, c)) }},
		{"Any", func(a, b, c Bool) Bool { return Any(a, b, c) }, func(a, b, c truth) truth { return or(a, or(b, c)) }},
		{"Cond", func(a, b, c Bool) Bool { return c.Then(Cond(condition, a, b)) }, func(a, _, c truth) truth { return then(c, a) }},
		{"Cond, else", func(a, b, c Bool) Bool { return c.Else(Cond(condition, a, b)) }, func(_, b, c truth) truth { return or(c, b) }},
		{"Error", func(a, _, _ Bool) Bool { return a.Then(Error("key")) }, func(a, _, _ truth) truth { return then(a, fault) }},
		{"nested", func(a, b, c Bool) Bool { return Any(All(a, b).Not(), c.Both(a)) }, func(a, b, c truth) truth { return or(not(then(a, b)), both(c, a)) }},
	} {
		for mayErr := range 8 {
			terms := [3]Bool{}
			for i, name := range []string{"a", "b", "c"} {
				terms[i] = read(name, mayErr>>i&1 > 0)
			}
			made := tt.made(terms[0], terms[1], terms[2])
			apart, ok := made.Apart()
			if !ok {
				t.Fatalf("%s cannot be told apart", tt.name)
			}
			for n := range 27 {
				in := []truth{truth(n / 9), truth(n / 3 % 3), truth(n % 3)}
				if possible(in, mayErr) {
					check(t, tt.name, made, apart, in, tt.want(in[0], in[1], in[2]))
				}
			}
		}
	}
}

// possible tells that no term errs which never does.
func possible(in []truth, mayErr int) bool {
	for i, a := range in {
		if a == fault && mayErr>>i&1 == 0 {
			return false
		}
	}
	return true
}

func check(t *testing.T, name string, made Bool, apart Apart, in []truth, want truth) {
	t.Helper()
	if got := evaluated(t, made.Expr.Value, in); got != want || got == fault && !made.Errs {
		t.Errorf("%s of %v is %v, want %v: %s", name, in, got, want, made.Expr)
	}
	for question, says := range map[string]struct {
		of   cel.Bool
		want bool
	}{
		"holds": {apart.Holds, want == yes}, "fails": {apart.Fails, want == no}, "reads": {apart.Readable, want != fault},
	} {
		if got := evaluated(t, says.of.Value, in); got != map[bool]truth{true: yes, false: no}[says.want] {
			t.Errorf("whether %s of %v %s is %v: %s", name, in, question, got, says.of)
		}
	}
}

// TestApart tells what can be told apart: not what holds an error that nothing tells beforehand,
// and what CEL itself may err of as if it did not.
func TestApart(t *testing.T) {
	raw := MayErr(cel.Ident("o").Field("a").AsBool())
	for name, b := range map[string]Bool{"an expression": raw, "its negation": raw.Not(), "behind another": read("b", true).Then(raw), "before another": raw.Else(Sure(cel.False()))} {
		if _, ok := b.Apart(); ok || !b.Errs {
			t.Errorf("%s is told apart", name)
		}
	}
	own := Sure(cel.Ident("o").Field("a").AsBool()).ErrsInCEL()
	if apart, ok := own.Apart(); !ok || !own.Errs || !apart.Readable.IsTrue() {
		t.Errorf("an error of CEL's own counts: %v", apart)
	}
}

// read is a condition on a key of o, which is an error where that is missing if it may err, and
// false then if not.
func read(name string, mayErr bool) Bool {
	o := cel.Ident("o")
	is := o.Field(name).Eq(cel.String("yes"))
	if mayErr {
		return Where(o.Has(name), is, "key", nil)
	}
	return Sure(cel.And(o.Has(name), is))
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

// TestWhere tells what of the needs is left where an expression asks by itself.
func TestWhere(t *testing.T) {
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
		{`has(o.k)`, `o.m[o.k] == 1`, `o.m[o.k] == 1`},
		{`has(o.k)`, `o.?m[?o.k].orValue(2) == 1`, `has(o.k) ? o.?m[?o.k].orValue(2) == 1 : dyn({}).key == true`},
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
		got := Where(needs.AsBool(), holds.AsBool(), "key", nil).Expr
		if got.String() != want.String() {
			t.Errorf("%s where %s: %s\nwant %s", tt.holds, tt.needs, got, want)
		}
	}
}
