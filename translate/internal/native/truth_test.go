package native

import (
	"strconv"
	"testing"

	celgo "github.com/google/cel-go/cel"

	"github.com/kvap/kvap/cel"
)

// An outcome is what evaluating a condition gives.
type outcome int

const (
	no outcome = iota
	yes
	bad // an error
)

func outcomeOf(b bool) outcome {
	if b {
		return yes
	}
	return no
}

// term is a condition with the outcome that the request has under its name: one that
// is missing is an error.
func term(name string, errs bool) Truth {
	b := cel.Ident("request").Field(name).AsBool()
	if errs {
		return MayErr(b)
	}
	return Sure(b)
}

// outcomes are all that a term can have.
func outcomes(t Truth) []outcome {
	if t.Errs {
		return []outcome{no, yes, bad}
	}
	return []outcome{no, yes}
}

// evaluator compiles a condition.
func evaluator(t *testing.T, b cel.Bool) func(request map[string]outcome) outcome {
	t.Helper()
	env, err := celgo.NewEnv(celgo.Variable("request", celgo.MapType(celgo.StringType, celgo.BoolType)))
	if err != nil {
		t.Fatal(err)
	}
	ast, issues := env.Compile(b.String())
	if issues.Err() != nil {
		t.Fatalf("%s: %v", b, issues.Err())
	}
	program, err := env.Program(ast)
	if err != nil {
		t.Fatal(err)
	}
	return func(request map[string]outcome) outcome {
		known := map[string]bool{}
		for name, o := range request {
			if o != bad {
				known[name] = o == yes
			}
		}
		v, _, err := program.Eval(map[string]any{"request": known})
		if err != nil {
			return bad
		}
		return outcomeOf(v.Value() == true)
	}
}

// Each connective is strict where it says so, whichever of its sides may be an error,
// and tells when it may be one itself.
func TestConnectives(t *testing.T) {
	for _, c := range []struct {
		name string
		of   func(a, b Truth) Truth
		want func(a, b outcome) outcome
	}{
		{"or else", Truth.OrElse, func(a, b outcome) outcome {
			if a == no {
				return b
			}
			return a
		}},
		{"and then", Truth.AndThen, func(a, b outcome) outcome {
			if a == yes {
				return b
			}
			return a
		}},
		{"both", Truth.Both, func(a, b outcome) outcome {
			if a == bad || b == bad {
				return bad
			}
			return outcomeOf(a == yes && b == yes)
		}},
		{"implies", Truth.Implies, func(a, b outcome) outcome {
			switch a {
			case yes:
				return b
			case no:
				return yes
			}
			return bad
		}},
		{"not", func(a, _ Truth) Truth { return a.Not() }, func(a, _ outcome) outcome {
			if a == bad {
				return bad
			}
			return outcomeOf(a == no)
		}},
	} {
		for i := range 4 {
			a, b := term("a", i&1 > 0), term("b", i&2 > 0)
			whole := c.of(a, b)
			evaluate := evaluator(t, whole.Expr)
			for _, x := range outcomes(a) {
				for _, y := range outcomes(b) {
					got := evaluate(map[string]outcome{"a": x, "b": y})
					if want := c.want(x, y); got != want {
						t.Errorf("%s of %v and %v is %v, want %v: %s", c.name, x, y, got, want, whole.Expr)
					}
					if got == bad && !whole.Errs {
						t.Errorf("%s is an error, and does not tell: %s", c.name, whole.Expr)
					}
				}
			}
		}
	}
}

// A chain says what its terms say one by one, in order: the first that decides or is
// an error is the whole.
func TestChains(t *testing.T) {
	const length = 4
	for errs := range 1 << length {
		var terms []Truth
		for i := range length {
			terms = append(terms, term("t"+strconv.Itoa(i), errs>>i&1 > 0))
		}
		for _, c := range []struct {
			name    string
			whole   Truth
			decides outcome
			rest    outcome
		}{{"some", SomeInOrder(terms), yes, no}, {"all", AllInOrder(terms), no, yes}} {
			if c.whole.Errs != (errs > 0) {
				t.Errorf("%s with the terms %04b that may be errors: it tells %v", c.name, errs, c.whole.Errs)
			}
			evaluate := evaluator(t, c.whole.Expr)
			for request := range requests(terms) {
				want := c.rest
				for i := range terms {
					if o := request["t"+strconv.Itoa(i)]; o == c.decides || o == bad {
						want = o
						break
					}
				}
				if got := evaluate(request); got != want {
					t.Errorf("%s of %v is %v, want %v: %s", c.name, request, got, want, c.whole.Expr)
				}
			}
		}
	}
}

// requests gives terms every outcome that they can have, together.
func requests(terms []Truth) func(yield func(map[string]outcome) bool) {
	return func(yield func(map[string]outcome) bool) {
		request := map[string]outcome{}
		var choose func(i int) bool
		choose = func(i int) bool {
			if i == len(terms) {
				return yield(request)
			}
			for _, o := range outcomes(terms[i]) {
				request["t"+strconv.Itoa(i)] = o
				if !choose(i + 1) {
					return false
				}
			}
			return true
		}
		choose(0)
	}
}

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
