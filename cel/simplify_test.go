package cel

import (
	"fmt"
	"math/rand/v2"
	"testing"

	celgo "github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
)

func parse(t testing.TB, text string) Value {
	t.Helper()
	v, err := Parse(text)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return v
}

func TestSimplify(t *testing.T) {
	for _, tt := range []struct{ text, want string }{
		{`a == 1 && true && b == 2`, `a == 1 && b == 2`},
		{`a && true`, `a && true`},
		{`a && a`, `a && true`},
		{`!(a && a)`, `!a`},
		{`a == 1 || a == 1 && b`, `a == 1`},
		{`a == 1 && (b || a == 1)`, `a == 1`},
		{`has(object.a) || !has(object.a)`, `true`},
		{`has(object.a.b) || !has(object.a.b)`, `has(object.a.b) || !has(object.a.b)`},
		{`!has(object.a) || has(object.a) && b`, `!has(object.a) || b`},
		{`!has(x.a) || has(x.a) && x.a == 1`, `!has(x.a) || x.a == 1`},
		{`!has(x.a) || has(x.a) && y.a == 1`, `!has(x.a) || has(x.a) && y.a == 1`},
		{`has(x.a) && (!has(x.a) || x.a.all(y, y > 1))`, `has(x.a) && x.a.all(y, y > 1)`},
		{`has(x.a) && (!has(x.a) || x.a == 1 && y)`, `has(x.a) && (!has(x.a) || x.a == 1 && y)`},
		{`has(a.b) && has(a.b.c) && has(a.b)`, `has(a.b) && has(a.b.c)`},
		{`!(a == b) && !(a < b) && !(size(a) < 2)`, `a != b && !(a < b) && size(a) >= 2`},
		{`!(!a && !b)`, `a || b`},
		{`!(a == 1 && b == 2)`, `a != 1 || b != 2`},
		{`!l.all(x, !p)`, `l.exists(x, p)`},
		{`!l.exists(x, x.a != 1)`, `l.all(x, x.a == 1)`},
		{`!l.exists(x, x.a < 1)`, `!l.exists(x, x.a < 1)`},
		{`[].size() > 0 || !x`, `!x`},
		{`!x || 'a' in ['b', 'c']`, `!x`},
		{`x || 'a' in ['b', y]`, `x || 'a' in ['b', y]`},
		{`x in ['a'] || x == 'b' || y || x in ['c', 'a']`, `x in ['a', 'b', 'c'] || y`},
		{`x == '' || x != 'a' || y`, `x != 'a' || y`},
		{`x != '' && y && x == 'a'`, `y && x == 'a'`},
		{`x != '' && x in ['', 'a']`, `x != '' && x in ['', 'a']`},
		{`x == 1 || x != 'a'`, `x == 1 || x != 'a'`},
		{`x != 'a' && x != 'b' && !(x in ['c', 'd'])`, `!(x in ['a', 'b', 'c', 'd'])`},
		{`x == 1 || x == 'a'`, `x == 1 || x == 'a'`},
		{`a == 1 && b || a == 1 && c`, `a == 1 && (b || c)`},
		{`(!has(x.a) || b) && (!has(x.a) || c)`, `!has(x.a) || b && c`},
		{`a == 1 && b || b && a == 1`, `a == 1 && b`},
		{`a == 1 && b || c == 2 && d || a == 1 && e`, `a == 1 && (b || e) || c == 2 && d`},
		{`a == 1 && b || c == 2 && d || c == 2 && e || a == 1 && f || g`, `a == 1 && (b || f) || c == 2 && (d || e) || g`},
		{`(a == 1 || b) && c && (a == 1 || d)`, `(a == 1 || b && d) && c`},
		{`a == 1 && b == 2 && c || a == 1 && b == 2 && d || e`, `a == 1 && b == 2 && (c || d) || e`},
		{`a == 1 && b || type(c) == int && a == 1 && d || e`, `a == 1 && (b || type(c) == int && d) || e`},     // which is never an error
		{`x.a == 1 && b || has(x.a) && x.a == 1 && d || e`, `x.a == 1 && b || has(x.a) && x.a == 1 && d || e`}, // is asked for first
		{`true ? a : b`, `a`},
		{`!a ? b : c`, `a ? c : b`},
		{`a < 1 ? true : false`, `a < 1`},
		{`a ? true : false`, `a ? true : false`},
		{`b.c == null ? true : true`, `b.c == null ? true : true`},
		{`'a' + ('b' + c + ('d' + e)) == f`, `'ab' + c + 'd' + e == f`},
		{`a + (b + c) == d`, `a + (b + c) == d`},
		{`a + ('b' + c) == d`, `a + 'b' + c == d`},
		{`dyn('a' + b) == null ? c : d`, `dyn('a' + b) == null ? c : d`},
		{`b.c == null ? c == 1 : d == 1`, `b.c == null ? c == 1 : d == 1`},
		{`a ? false : true`, `!a`},
		{`a ? b : false`, `a ? b : false`},
		{`has(object.a) ? b == 1 : false`, `has(object.a) && b == 1`},
		{`has(object.a) ? true : b == 1`, `has(object.a) || b == 1`},
		{`1 + 2 < 4 && 'a' + 'b' == 'ab' && x + 'a' + 'b' == y`, `x + 'ab' == y`},
		{`9223372036854775807 + 1 > 0`, `9223372036854775807 + 1 > 0`},
		{`'abc'.startsWith('ab') && size('é') == 1`, `true`},
		{`object in []`, `false`},
		{`object.a in []`, `object.a in []`},
		{`l.all(object, !has(object.a) || has(object.a) && b)`, `l.all(object, !has(object.a) || has(object.a) && b)`},
		{`null == null || 1 == 2`, `true`},
		{`a ? (a ? b : c) : (a && d == 1)`, `a ? b : false`},
		{`x.a == 1 ? (x.a != 1 ? b == 1 : c == 1) : true`, `x.a == 1 ? c == 1 : true`},
		{`has(x.a) ? false : (has(x.a) ? false : false)`, `has(x.a) ? false : false`},
		{`has(object.a) ? false : has(object.a) && b`, `false`},
		{`has(object.a) ? b == 1 : true`, `!has(object.a) || b == 1`},
		{`has(object.a) && has(object.a.b) ? true : has(object.a.b)`, `has(object.a) && has(object.a.b) ? true : has(object.a.b)`},
		{`has(object.a) && (l.all(x, has(object.a) ? x.b : x.c) || c == 1)`, `has(object.a) && (l.all(x, x.b) || c == 1)`},
		{`has(x.a) && (l.all(x, has(x.a) ? x.b : x.c) || c == 1)`, `has(x.a) && (l.all(x, has(x.a) ? x.b : x.c) || c == 1)`},
		{`has(x.a) && (b || (has(x.a) ? c == 1 : d))`, `has(x.a) && (b || (has(x.a) ? c == 1 : d))`},
		{`has(object.a) && type(object.a) == map && has(object.a.b) ? type(object.a.b) == list : false`, `has(object.a) && type(object.a) == map && has(object.a.b) && type(object.a.b) == list`},
	} {
		if got := Simplify(parse(t, tt.text)).String(); got != tt.want {
			t.Errorf("%s\ngot  %s\nwant %s", tt.text, got, tt.want)
		}
	}
}

// A sower grows random expressions.
type sower struct {
	r     *rand.Rand
	bound []string
	key   Value // of maps, computed
}

func (s *sower) pick(vs ...func() Value) Value { return vs[s.r.IntN(len(vs))]() }

func (s *sower) name() string { return []string{"a", "b", "c", "in", "x-y"}[s.r.IntN(5)] }

func (s *sower) root() Value {
	if n := len(s.bound); n > 0 && s.r.IntN(2) == 0 {
		return Ident(s.bound[s.r.IntN(n)])
	}
	return Ident([]string{"object", "oldObject"}[s.r.IntN(2)])
}

func (s *sower) value(depth int) Value {
	if depth <= 0 {
		return s.pick(s.root, s.selected, s.selected, s.literal)
	}
	d := depth - 1
	return s.pick(
		s.selected,
		s.literal,
		func() Value { return s.bool(d) },
		func() Value { return s.value(d).Plus(s.value(d)) },
		func() Value { return s.raw(opCond, s.bool(d), s.value(d), s.value(d)) },
		func() Value { return s.selected().Size() },
		func() Value { return s.root().Optional(s.name()).OrValue(s.value(d)) },
		func() Value { return s.macro([]string{"filter", "map"}[s.r.IntN(2)], d) },
	)
}

func (s *sower) selected() Value {
	v := s.root().Field(s.name())
	if s.r.IntN(3) == 0 {
		v = v.Field(s.name())
	}
	return v
}

func (s *sower) literal() Value {
	return s.pick(
		func() Value { return String([]string{"a", "b", "c"}[s.r.IntN(3)]) },
		func() Value { return String([]string{"a", "b", "c"}[s.r.IntN(3)]) },
		func() Value { return Int(int64(s.r.IntN(3))) },
		func() Value { return Lit(s.r.IntN(2) == 0).Value },
		Null,
	)
}

func (s *sower) strings() Value {
	var vs []Value
	for range s.r.IntN(3) {
		vs = append(vs, String([]string{"a", "b", "c"}[s.r.IntN(3)]))
	}
	return List(vs...)
}

// raw is a node as a user may have written it, not simplified by a constructor.
func (s *sower) raw(o op, vs ...Value) Value {
	if o == opAnd || o == opOr {
		return Value{flatten(o, nodes(vs))}
	}
	return mk(o, "", vs...)
}

func (s *sower) macro(name string, depth int) Value {
	list := s.selected()
	x := []string{"x", "y"}[s.r.IntN(2)]
	s.bound = append(s.bound, x)
	body := s.bool(depth)
	s.bound = s.bound[:len(s.bound)-1]
	return list.Macro(MacroName(name), Ident(x), body)
}

func (s *sower) bool(depth int) Value {
	if depth <= 0 {
		return s.pick(s.selected,
			func() Value { return s.root().Has(s.name()).Value },
			func() Value { return s.selected().Has(s.name()).Value },
			func() Value { return s.selected().Eq(s.literal()).Value },
			func() Value { return s.selected().Ne(s.literal()).Value },
			func() Value { return s.selected().In(s.strings()).Value },
			func() Value { return Lit(s.r.IntN(2) == 0).Value },
		)
	}
	d := depth - 1
	chain := func() Value {
		o := []op{opAnd, opOr}[s.r.IntN(2)]
		vs := []Value{s.bool(d), s.bool(d)}
		if s.r.IntN(3) == 0 { // a term again, for the rules that look for one
			vs = append(vs, vs[0])
		}
		if s.r.IntN(3) == 0 {
			vs = append(vs, s.raw(opAnd+opOr-o, s.raw(opNot, vs[0]), s.bool(d)))
		}
		if s.r.IntN(3) == 0 {
			vs = append(vs, s.raw(opAnd+opOr-o, s.bool(d), vs[0]))
		}
		return s.raw(o, vs...)
	}
	known := func() Value { // a condition, and again where it decides
		c := s.bool(d)
		again := func() Value {
			e := s.raw([]op{opAnd, opOr}[s.r.IntN(2)], c, s.bool(d))
			return s.pick(func() Value { return c }, func() Value { return e }, func() Value { return s.raw(opCond, c, s.bool(d), e) })
		}
		return s.raw(opCond, s.raw([]op{opAnd, opOr}[s.r.IntN(2)], c, s.bool(0)), again(), again())
	}
	compare := func() Value {
		return s.value(d).Binary([]Operator{Equals, Differs, Less, LessEqual, Greater, GreaterEqual}[s.r.IntN(6)], s.value(d))
	}
	return s.pick(
		chain, chain, chain,
		func() Value { return s.raw(opNot, s.bool(d)) },
		func() Value { return s.raw(opNot, s.bool(d)) },
		known, compare,
		func() Value { return s.selected().Size().Binary([]Operator{Less, GreaterEqual}[s.r.IntN(2)], Int(1)) },
		func() Value { return s.raw(opCond, s.bool(d), s.bool(d), s.bool(d)) },
		func() Value {
			return s.selected().Type().Eq(Ident([]string{"map", "list", "string"}[s.r.IntN(3)])).Value
		},
		func() Value { return s.value(d).In(s.strings()).Value },
		func() Value { return s.value(d).StartsWith(s.literal()).Value },
		func() Value { return s.macro([]string{"all", "exists", "exists_one"}[s.r.IntN(3)], d) },
		func() Value { return s.bool(0) },
	)
}

func nodes(vs []Value) []*node {
	ns := make([]*node, len(vs))
	for i, v := range vs {
		ns[i] = v.n
	}
	return ns
}

// object is a random object of few fields, so that expressions hit them.
func (s *sower) object() any {
	if s.r.IntN(8) == 0 {
		return nil
	}
	return s.fields(2)
}

func (s *sower) fields(depth int) map[string]any {
	m := map[string]any{}
	for _, k := range []string{"a", "b", "c", "in", "x-y"} {
		if s.r.IntN(4) > 0 {
			m[k] = s.datum(depth)
		}
	}
	return m
}

func (s *sower) datum(depth int) any {
	switch n := s.r.IntN(10); {
	case n < 3:
		return s.r.IntN(2) == 0
	case n < 5:
		return []string{"a", "b", "c", ""}[s.r.IntN(4)]
	case n < 6:
		return int64(s.r.IntN(3))
	case n < 7:
		return nil
	case depth == 0:
		return float64(s.r.IntN(3))
	case n < 9:
		l := make([]any, s.r.IntN(3))
		for i := range l {
			l[i] = s.datum(depth - 1)
		}
		return l
	}
	return s.fields(depth - 1)
}

// outcome is a value, or that there is none.
func outcome(p celgo.Program, vars map[string]any) ref.Val {
	out, _, err := p.Eval(vars)
	if err != nil {
		return nil
	}
	return out
}

func same(a, b ref.Val) bool {
	if a == nil || b == nil {
		return a == nil && b == nil
	}
	return a.Type() == b.Type() && a.Equal(b) == types.True
}

// moody tells that the programs agree after all when asked again: what walks the
// keys of a map has them in any order.
func moody(p, q celgo.Program, vars map[string]any) bool {
	for range 50 {
		if same(outcome(p, vars), outcome(q, vars)) {
			return true
		}
	}
	return false
}

// keepsOutcome evaluates v and its simplified form and compares.
func keepsOutcome(t *testing.T, e *celgo.Env, v Value, s *sower, inputs int) (compiled bool) {
	t.Helper()
	before, err := compile(e, v.String())
	if err != nil {
		return false
	}
	w := Simplify(v)
	after, err := compile(e, w.String())
	if err != nil {
		t.Fatalf("%s\nsimplified %s\ndoes not compile: %v", v, w, err)
	}
	if w.n.size > v.n.size {
		t.Errorf("%s\nsimplified %s\nis longer", v, w)
	}
	if before.OutputType().String() == "bool" && after.OutputType().String() != "bool" {
		t.Errorf("%s\nsimplified %s\nis no longer statically bool", v, w)
	}
	if again := Simplify(w); !Equal(w, again) {
		t.Errorf("%s\nsimplified %s\nand again  %s", v, w, again)
	}
	p, err := e.Program(before)
	if err != nil {
		return false
	}
	q, err := e.Program(after)
	if err != nil {
		t.Fatal(err)
	}
	for range inputs {
		vars := map[string]any{"object": s.object(), "oldObject": s.object()}
		if want, got := outcome(p, vars), outcome(q, vars); !same(want, got) && !moody(p, q, vars) {
			t.Fatalf("%s\nis %v, simplified\n%s\nis %v\n%s", v, want, w, got, fmt.Sprint(vars))
		}
	}
	return true
}

func TestSimplifyKeepsOutcome(t *testing.T) {
	t.Parallel()
	e := env(t, Latest)
	compiled := 0
	for seed := range uint64(1500) {
		s := &sower{r: rand.New(rand.NewPCG(seed, 1))}
		v := s.pick(func() Value { return s.bool(3) }, func() Value { return s.value(3) })
		checkFixpoint(t, v)
		if keepsOutcome(t, e, v, s, 20) {
			compiled++
		}
	}
	if compiled < 700 {
		t.Errorf("only %d expressions compile", compiled)
	}
}

func TestJoinLoops(t *testing.T) {
	for _, tt := range []struct{ text, want string }{
		{`l.all(x, x.a) && l.all(y, y.b)`, `l.all(x, x.a && x.b)`},
		{`l.exists(x, x.a) || b || l.exists(x, x.b)`, `l.exists(x, x.a || x.b) || b`},
		{`l.exists(x, x.a) && l.exists(x, x.b)`, `l.exists(x, x.a) && l.exists(x, x.b)`},
		{`l.all(x, x.a) && m.all(x, x.b)`, `l.all(x, x.a) && m.all(x, x.b)`},
		{`a.map(z, z.l.all(x, x.a) && z.l.all(y, y.l.exists(p, p == x) || y.l.exists(q, q == 1)))`,
			`a.map(z, z.l.all(x2, x2.a && x2.l.exists(p, p == x || p == 1)))`},
	} {
		if got := parse(t, tt.text).AsBool().JoinLoops().String(); got != tt.want {
			t.Errorf("%s\ngot  %s\nwant %s", tt.text, got, tt.want)
		}
	}
}

// Errors stay errors, and what one of them hides.
func TestJoinLoopsKeepsOutcome(t *testing.T) {
	t.Parallel()
	e := env(t, Latest)
	joined := 0
	for seed := range uint64(1500) {
		s := &sower{r: rand.New(rand.NewPCG(seed, 5))}
		list, o := s.selected(), []op{opAnd, opOr}[s.r.IntN(2)]
		var loops []Value
		for range 2 {
			s.bound = []string{[]string{"x", "y"}[s.r.IntN(2)]}
			body := s.bool(2)
			loops = append(loops, list.Macro([]MacroName{MacroAll, MacroExists}[o-opAnd], Ident(s.bound[0]), body))
		}
		s.bound = nil
		b := s.raw(o, loops[0], s.bool(1), loops[1]).AsBool()
		out := b.JoinLoops()
		p, ok := program(t, e, b)
		if !ok || Equal(b.Value, out.Value) {
			continue
		}
		q, ok := program(t, e, out)
		if !ok {
			t.Fatalf("%s\njoined %s\ndoes not compile", b, out)
		}
		joined++
		for range 20 {
			vars := map[string]any{"object": s.object(), "oldObject": s.object()}
			if want, got := outcome(p, vars), outcome(q, vars); !same(want, got) && !moody(p, q, vars) {
				t.Fatalf("%s\nis %v, joined\n%s\nis %v\n%v", b, want, out, got, vars)
			}
		}
	}
	if joined < 500 {
		t.Errorf("only %d have loops to join", joined)
	}
}

// FuzzSimplify is the same with other seeds.
func FuzzSimplify(f *testing.F) {
	e := env(f, Latest)
	f.Add(uint64(1), 2)
	f.Fuzz(func(t *testing.T, seed uint64, depth int) {
		s := &sower{r: rand.New(rand.NewPCG(seed, 2))}
		keepsOutcome(t, e, s.bool(min(max(depth, 1), 4)), s, 20)
	})
}
