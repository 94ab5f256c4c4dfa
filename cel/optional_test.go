package cel

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/cel-go/common/types"
)

func optionalVariables(t *testing.T) func(string) (Value, bool) {
	return func(name string) (Value, bool) {
		switch name {
		case "plain":
			return parse(t, `object.spec.containers`), true
		case "maybe":
			return parse(t, `object.?spec.containers`), true
		case "filled":
			return parse(t, `variables.maybe.orValue([])`), true
		case "loop":
			return parse(t, `variables.loop`), true
		}
		return Value{}, false
	}
}

func TestWithoutPlainOptionals(t *testing.T) {
	for _, tt := range []struct {
		text, want string
		doubtful   int
	}{
		{`object.spec.?a.orValue(1)`, `object.spec.?a.orValue(1)`, 0},
		{`object.spec.?a.b.c.orValue(1)`, `object.spec.?a.b.c.orValue(1)`, 0},
		{`object.spec[?'a']['b'].orValue(1)`, `object.spec[?'a']['b'].orValue(1)`, 0},
		{`object.spec.a.orValue(1)`, `object.spec.a`, 0},
		{`object.spec.a.or(optional.of(1)).orValue(2)`, `object.spec.a.or(optional.of(1)).orValue(2)`, 2},
		{`object.?spec.a.or(object.?b).orValue(2)`, `object.?spec.a.or(object.?b).orValue(2)`, 0},
		{`object.spec.rules.orValue([]).exists(r, r.paths.orValue([]).size() > 0)`, `object.spec.rules.exists(r, r.paths.size() > 0)`, 0},
		{`object.?spec.orValue({}).a.orValue(1) == request.name.orValue('')`, `object.?spec.orValue({}).a == request.name`, 0},
		{`variables.plain.orValue([])`, `variables.plain`, 0},
		{`variables.maybe.orValue([])`, `variables.maybe.orValue([])`, 0},
		{`variables.filled.orValue([])`, `variables.filled`, 0},
		{`variables.loop.orValue([])`, `variables.loop.orValue([])`, 1},
		{`variables.other.orValue([])`, `variables.other`, 0},
		{`variables.filled.map(c, c.?name).all(n, n.orValue('') != '')`, `variables.filled.map(c, c.?name).all(n, n.orValue('') != '')`, 1},
		{`variables.filled.map(c, c.name).all(n, n.orValue('') != '')`, `variables.filled.map(c, c.name).all(n, n != '')`, 0},
		{`(has(object.a) ? object.?b : object.c).orValue(1)`, `(has(object.a) ? object.?b : object.c).orValue(1)`, 1},
		{`(has(object.a) ? object.?b : optional.none()).orValue(1)`, `(has(object.a) ? object.?b : optional.none()).orValue(1)`, 0},
		{`object.?a.optMap(x, x.orValue(2) + 1).orValue(0)`, `object.?a.optMap(x, x + 1).orValue(0)`, 0},
		{`object.?a.optFlatMap(x, x.?b).orValue(0)`, `object.?a.optFlatMap(x, x.?b).orValue(0)`, 0},
		{`object.a.first().orValue(0)`, `object.a.first().orValue(0)`, 0},
		{`object.a.all(variables, variables.maybe.orValue(1) == 1)`, `object.a.all(variables, variables.maybe == 1)`, 0},
		{`format.uuid().validate(object.a).orValue([]).size() == 0`, `format.uuid().validate(object.a).orValue([]).size() == 0`, 0},
		{`[?object.?a].all(x, x.orValue(1) == 1)`, `[?object.?a].all(x, x == 1)`, 0},
		{`optional.of(object.?a).value().orValue(1)`, `optional.of(object.?a).value().orValue(1)`, 1},
	} {
		got := parse(t, tt.text).WithoutPlainOptionals(optionalVariables(t))
		doubtful := got.Changes(Oldest, optionalVariables(t))
		if got.String() != tt.want || len(doubtful) != tt.doubtful {
			t.Errorf("%s\ngot  %s\nwant %s\ndoubtful %v, want %d", tt.text, got, tt.want, doubtful, tt.doubtful)
		}
	}
}

func TestChanges(t *testing.T) {
	for _, tt := range []struct {
		text   string
		oldest Release
		want   string
	}{
		{`object.a.orValue(1) == 1`, 34, "orValue 1.37"},
		{`object.a.orValue(1) == 1`, 37, ""},
		{`object.?a.orValue(1) == 1`, 30, ""},
		{`object.a.indexOf('-') > 0`, 31, "indexOf 1.32"},
		{`object.a.indexOf('-') > 0`, 32, ""},
		{`'a-b'.indexOf(object.a) > 0`, 30, ""},
		{`[object.a].indexOf('-') == 0`, 30, ""},
		{`object.a.indexOf('-', 2) > 0`, 34, ""},
		{`object.a.indexOf(object.b, 2) > 0`, 34, "indexOf 1.37"},
		{`object.a.lastIndexOf('', 2) > 0 || object.a.or(optional.none()).orValue(true)`, 36, "lastIndexOf 1.37, orValue 1.37, or 1.37"},
	} {
		var got []string
		for _, c := range parse(t, tt.text).Changes(tt.oldest, nil) {
			got = append(got, c.Call.n.name+" "+c.Since.String())
		}
		if strings.Join(got, ", ") != tt.want {
			t.Errorf("%s from %s: %v, want %s", tt.text, tt.oldest, got, tt.want)
		}
	}
}

// What is taken for plain is no optional value, and what is taken for optional is
// one, whatever the input; and what has a value where orValue is strict keeps it.
func TestOptionality(t *testing.T) {
	t.Parallel()
	e := env(t, Latest)
	seen := map[optionality]int{}
	for seed := range uint64(900) {
		s := &sower{r: rand.New(rand.NewPCG(seed, 7))}
		v := s.maybeOptional(1 + int(seed%3))
		p, ok := program(t, e, Bool{v})
		if !ok {
			continue
		}
		o := (&optionals{known: map[string]optionality{}}).of(v.n, nil)
		seen[o]++
		out := v.WithoutPlainOptionals(nil)
		q, compiles := program(t, e, Bool{out})
		for range 10 {
			vars := map[string]any{"object": s.object(), "oldObject": s.object()}
			value := outcome(p, vars)
			if compiles && value != nil && !same(value, outcome(q, vars)) {
				t.Fatalf("%s\nis %v\n%s\nis %v, of\n%s", v, value, out, outcome(q, vars), fmt.Sprint(vars))
			}
			_, isOptional := value.(*types.Optional)
			if value != nil && (o == plain && isOptional || o.isOptional() && !isOptional) {
				t.Fatalf("%s is taken for %d and is %v, of\n%s", v, o, value, fmt.Sprint(vars))
			}
		}
	}
	if seen[plain] < 50 || seen[optional] < 50 {
		t.Errorf("values by optionality: %v", seen)
	}
}

// maybeOptional is a random expression whose value may be optional.
func (s *sower) maybeOptional(depth int) Value {
	if depth == 0 {
		leaves := []Value{Ident("object"), Ident("oldObject"), Ident("object").Field("a"), Func(FuncOptionalNone), String("a"), Map(Entry{String("a"), Int(1)})}
		return leaves[s.r.IntN(len(leaves))]
	}
	x, y := s.maybeOptional(depth-1), s.maybeOptional(depth-1)
	switch s.r.IntN(9) {
	case 0:
		return x.Optional("a")
	case 1:
		return x.Field("b")
	case 2:
		return x.OrValue(y)
	case 3:
		return x.Call(FuncOr, y)
	case 4:
		return Cond(s.bool(1).AsBool(), x, y)
	case 5:
		return Func(FuncOptionalOf, x)
	case 6:
		return x.Macro("optMap", Ident("v"), Ident("v").Field("a"))
	case 7:
		return x.OptIndex(String("b"))
	}
	return List(x, y).Macro(MacroFilter, Ident("v"), s.bool(1)).Index(Int(0))
}
