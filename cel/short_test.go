package cel

import (
	"math/rand/v2"
	"testing"
)

func TestShort(t *testing.T) {
	for _, tt := range []struct{ text, want string }{
		{`has(o.a) && has(o.a.b)`, `o.?a.?b.hasValue()`},
		{`has(o.a) && has(o.a.b) && has(o.a.b.c) && x`, `o.?a.?b.?c.hasValue() && x`},
		{`!has(o.a) || !has(o.a.b) || x`, `!o.?a.?b.hasValue() || x`},
		{`x && has(o.a) && has(o.a.b)`, `x && o.?a.?b.hasValue()`},
		{`o.?a.?b.hasValue() ? o.a.b : 'x'`, `o.?a.?b.orValue('x')`},
		{`has(o.a.b) ? o.a.b : 1`, `o.a.?b.orValue(1)`},
		{`has(o.a.b) ? o.a.b : o.c`, `has(o.a.b) ? o.a.b : o.c`},
		{`o.?a.?b.hasValue() ? o.a.c : 1`, `o.?a.?b.hasValue() ? o.a.c : 1`},
		{`has(o.a) && has(o.b)`, `has(o.a) && has(o.b)`},
		{`has(o.a) && has(o.b.a)`, `has(o.a) && has(o.b.a)`},
		{`has(o.a) && has(p.a.b)`, `has(o.a) && has(p.a.b)`},
		{`has(o.a) || has(o.a.b)`, `has(o.a) || has(o.a.b)`},
		{`!has(o.a) && !has(o.a.b)`, `!has(o.a) && !has(o.a.b)`},
		{`has(o.a) && !has(o.a.b)`, `has(o.a) && !has(o.a.b)`},
		{`has(o.a) && o.a.b == 1`, `has(o.a) && o.a.b == 1`},
		{`has(o.l) && o.?l.orValue([]).exists(x, x)`, `o.?l.orValue([]).exists(x, x)`},
		{`!has(o.l) || o.?l.orValue([]).all(x, x)`, `o.?l.orValue([]).all(x, x)`},
		{`has(o.l) && o.?l.orValue([]).all(x, x)`, `has(o.l) && o.?l.orValue([]).all(x, x)`},
		{`has(o.l) && o.?l.orValue(['a']).exists(x, x)`, `has(o.l) && o.?l.orValue(['a']).exists(x, x)`},
		{`has(o.l) && o.?m.orValue([]).exists(x, x)`, `has(o.l) && o.?m.orValue([]).exists(x, x)`},
		{`has(o.l) && size(o.l) != 0 && o.l.exists(x, x)`, `has(o.l) && o.l.exists(x, x)`},
		{`size(o.l) == 0 || o.l.all(x, x)`, `o.l.all(x, x)`},
		{`size(o.l) != 0 && o.l.all(x, x)`, `size(o.l) != 0 && o.l.all(x, x)`},
		{`size(o.l) != 1 && o.l.exists(x, x)`, `size(o.l) != 1 && o.l.exists(x, x)`},
		{`size(o.m) != 0 && o.l.exists(x, x)`, `size(o.m) != 0 && o.l.exists(x, x)`},
		{`o.a == 'x' && has(o.a)`, `o.?a.orValue('') == 'x'`},
		{`o.a != 'x' || o.?a.orValue('') == ''`, `o.?a.orValue('') != 'x'`},
		{`o.?a.?b.orValue('') != '' && o.a.b != 5`, `o.?a.?b.orValue('') != '' && o.a.b != 5`},
		{`o.?a.orValue('') == '' || o.a == 5`, `o.?a.orValue('') == '' || o.a == 5`},
		{`o.a != 'x' && has(o.a)`, `o.a != 'x' && has(o.a)`},
		{`dyn(o.l) != null && o.?l.orValue([]).exists(x, x)`, `dyn(o.l) != null && o.?l.orValue([]).exists(x, x)`},
		{`has(o.a) && o.a == 'x'`, `o.?a.orValue('') == 'x'`},
		{`has(o.a) && has(o.a.b) && o.a.b == 'x'`, `o.?a.?b.orValue('') == 'x'`},
		{`has(o.a) && o.a != 'x'`, `has(o.a) && o.a != 'x'`},
		{`has(o.a) && o.a == ''`, `has(o.a) && o.a == ''`},
		{`has(o.a) && o.a == 1`, `o.?a.orValue(0) == 1`},
		{`has(o.a) && o.a == 0`, `o.?a.orValue(1) == 0`},
		{`has(o.a) && has(o.a.b) && o.a.b >= 1000 && o.a.b <= 2000`, `o.?a.?b.orValue(0) >= 1000 && o.a.b <= 2000`},
		{`!has(o.a) || o.a >= 5`, `o.?a.orValue(5) >= 5`},
		{`!has(o.a) || o.a > -7`, `o.?a.orValue(0) > -7`},
		{`has(o.a) && o.a < -7`, `o.?a.orValue(0) < -7`},
		{`has(o.a) && !(o.a in [5, 6])`, `!(o.?a.orValue(5) in [5, 6])`},
		{`!has(o.a) || !(o.a in [0, 1, -1])`, `!has(o.a) || !(o.a in [0, 1, -1])`},
		{`has(o.a) && o.a in [1, 'x']`, `has(o.a) && o.a in [1, 'x']`},
		{`has(o.a) && o.a == 1.5`, `has(o.a) && o.a == 1.5`},
		{`!has(o.a) || o.a != 'x'`, `o.?a.orValue('') != 'x'`},
		{`!has(o.a) || o.a == 'x'`, `!has(o.a) || o.a == 'x'`},
		{`!has(o.a) || !(o.a in ['x', 'y'])`, `!(o.?a.orValue('') in ['x', 'y'])`},
		{`!has(o.a) || !(o.a in ['x', ''])`, `!has(o.a) || !(o.a in ['x', ''])`},
		{`o.?a[?'k'].orValue('') == '' || !o.a['k'].matches('^v')`, `!o.?a[?'k'].orValue('').matches('^v')`},
		{`o.?a[?'k'].orValue('') == '' || !o.a['k'].matches('v*')`, `o.?a[?'k'].orValue('') == '' || !o.a['k'].matches('v*')`},
		{`o.?l[?0].?kind.orValue('') == '' || o.l[0].kind != 'x'`, `o.?l[?0].?kind.orValue('') != 'x'`},
		{`has(o.a) && y && o.a.startsWith('x') && o.a.endsWith('z')`, `y && o.?a.orValue('').startsWith('x') && o.a.endsWith('z')`},
		{`has(o.a) && o.b == 'x'`, `has(o.a) && o.b == 'x'`},
		{`!(o.a > 1)`, `o.a <= 1`},
		{`!(o.?a.orValue(0) >= 1) || !(o.b < size(o.c))`, `o.?a.orValue(0) < 1 || o.b >= size(o.c)`},
		{`!(double(o.a) > 1.5)`, `!(double(o.a) > 1.5)`},
		{`!o.l.map(x, double(x)).exists(y, !(y > 1.5))`, `!o.l.map(x, double(x)).exists(y, !(y > 1.5))`},
		{`!(variables.a > 1)`, `!(variables.a > 1)`},
		{`!(variables.a.b > 1)`, `variables.a.b <= 1`},
		{`!(o.a == 1)`, `o.a != 1`},
		{`!(has(o.a) && o.a != 80)`, `o.?a.orValue(80) == 80`},
		{`[o.l].exists(l, l.exists(x, x == l2))`, `o.l.exists(x, x == l2)`},
		{`[o.l].all(l, l.exists(x, x == 1) && o.m)`, `[o.l].all(l, l.exists(x, x == 1) && o.m)`},
		{`[o.l].exists(l, l.exists(x, x == size(l)))`, `[o.l].exists(l, l.exists(x, x == size(l)))`},
		{`[o.l].exists(l, o.m.exists(x, x in l))`, `[o.l].exists(l, o.m.exists(x, x in l))`},
		{`[o.l].exists(l, l.b)`, `[o.l].exists(l, l.b)`},
		{`[o.l, o.m].exists(l, l.b == 1)`, `[o.l, o.m].exists(l, l.b == 1)`},
		{`o.?type.orValue('LoadBalancers') == 'LoadBalancers'`, `!has(o.type) || o.type == 'LoadBalancers'`},
		{`o.?type.orValue('LoadBalancers') != 'LoadBalancers'`, `has(o.type) && o.type != 'LoadBalancers'`},
		{`o.?type.orValue('a') == 'a'`, `o.?type.orValue('a') == 'a'`},
		{`o.?type.orValue('LoadBalancers') == 'LoadBalancer'`, `o.?type.orValue('LoadBalancers') == 'LoadBalancer'`},
		{`o.?spec.?type.orValue('LoadBalancers') == 'LoadBalancers'`, `o.?spec.?type.orValue('LoadBalancers') == 'LoadBalancers'`},
		{`has(o.a) && o.a`, `has(o.a) && o.a`},
		{`o.?m[?'a'].orValue([]).exists(x, 'k' in x && x['k'] == 'v')`, `o.?m[?'a'].orValue(dyn([])).exists(x, 'k' in x && x['k'] == 'v')`},
		{`o.l[?0].orValue([]).filter(x, x.exists(y, size(y) > 1 && y[0] == 'v'))`, `o.l[?0].orValue(dyn([])).filter(x, x.exists(y, size(y) > 1 && y[0] == 'v'))`},
		{`o.l[?0].orValue([]).exists(x, x == 'a' || x == 1)`, `o.l[?0].orValue(dyn([])).exists(x, x == 'a' || x == 1)`},
		{`o.l[?0].orValue([]).exists(x, x == 'a' || x == 'b' || has(x.a) && x.b)`, `o.l[?0].orValue([]).exists(x, x == 'a' || x == 'b' || has(x.a) && x.b)`},
		{`o.l[?0].orValue(['a']).exists(x, size(x) > 1 && x != '')`, `o.l[?0].orValue(['a']).exists(x, size(x) > 1 && x != '')`},
		{`o.?l.orValue([]).exists(x, size(x) > 1 && x[0] == 'v')`, `o.?l.orValue([]).exists(x, size(x) > 1 && x[0] == 'v')`},
		{`size(o.l) > 0 ? o.l[0] : null`, `size(o.l) > 0 ? o.l[0] : null`},
		{`o.a.startsWith('a') || x || o.a.startsWith('b') || o.a.startsWith('c') || o.a.startsWith('d') || o.a.endsWith('e')`,
			`['a', 'b', 'c', 'd'].exists(prefix, o.a.startsWith(prefix)) || x || o.a.endsWith('e')`},
		{`!o.a.endsWith('a') && !o.a.endsWith('b') && !o.a.endsWith('c') && !o.a.endsWith('d')`, `!['a', 'b', 'c', 'd'].exists(suffix, o.a.endsWith(suffix))`},
		{`part.contains('a') || part.contains('b') || part.contains('c') || part.contains('d')`, `['a', 'b', 'c', 'd'].exists(part2, part.contains(part2))`},
		{`o.a.startsWith('a') || o.a.startsWith('b') || o.a.startsWith('c')`, `o.a.startsWith('a') || o.a.startsWith('b') || o.a.startsWith('c')`},
		{`o.a.startsWith('a') || o.a.startsWith('b') || o.b.startsWith('c') || o.b.startsWith('d')`, `o.a.startsWith('a') || o.a.startsWith('b') || o.b.startsWith('c') || o.b.startsWith('d')`},
		{`!o.a.startsWith('a-') && !o.a.startsWith('a') && !o.a.startsWith('b-') && !o.a.startsWith('b')`, `!o.a.startsWith('a') && !o.a.startsWith('b')`},
		{`o.a.startsWith('a') && o.a.startsWith('ab') && o.a.startsWith('b') && o.a.startsWith('c')`, `o.a.startsWith('a') && o.a.startsWith('ab') && o.a.startsWith('b') && o.a.startsWith('c')`},
	} {
		if got := parse(t, tt.text).Short().String(); got != tt.want {
			t.Errorf("%s\ngot  %s\nwant %s", tt.text, got, tt.want)
		}
	}
}

func TestWithoutDyn(t *testing.T) {
	for _, tt := range []struct{ text, want string }{
		{`dyn(pod.spec.?l.orValue([])) + dyn(pod.spec.m)`, `pod.spec.?l.orValue([]) + pod.spec.m`},
		{`pod.l.exists(x, dyn(x.a) == 1 && size(dyn(x)) > 0)`, `pod.l.exists(x, x.a == 1 && size(x) > 0)`},
		{`(pod.l + dyn(pod.m)).filter(x, x.a).all(y, dyn(y) != {})`, `(pod.l + pod.m).filter(x, x.a).all(y, y != {})`},
		{`dyn(object.l) == dyn(pod.a)`, `dyn(object.l) == pod.a`},
		{`object.l.exists(pod, dyn(pod.a) == 1)`, `object.l.exists(pod, dyn(pod.a) == 1)`},
		{`object.l.exists(x, dyn(x) == 1)`, `object.l.exists(x, dyn(x) == 1)`},
		{`dyn(pod.l + object.m) == dyn(size(pod.l))`, `dyn(pod.l + object.m) == dyn(size(pod.l))`},
		{`dyn(pod.a.orValue(1))`, `dyn(pod.a.orValue(1))`},
	} {
		if got := parse(t, tt.text).WithoutDyn("pod").String(); got != tt.want {
			t.Errorf("%s\ngot  %s\nwant %s", tt.text, got, tt.want)
		}
	}
}

// A short form has the value of the long one, or is an error where that is.
func TestShortKeepsOutcome(t *testing.T) {
	t.Parallel()
	e := env(t, Latest)
	shorter := 0
	for seed := range uint64(3000) {
		s := &sower{r: rand.New(rand.NewPCG(seed, 9))}
		o, negated := opAnd, func(v Value) Value { return v }
		if s.r.IntN(2) == 0 {
			o, negated = opOr, func(v Value) Value { return s.raw(opNot, v) }
		}
		path := s.root()
		var terms []Value
		for range 1 + s.r.IntN(3) {
			name := []string{"a", "b", "c"}[s.r.IntN(3)]
			terms, path = append(terms, negated(path.Has(name).Value)), path.Field(name)
		}
		if of, name, ok := cut(path); ok && s.r.IntN(4) == 0 { // an empty text is as good as none
			terms[len(terms)-1] = of.Optional(name).OrValue(String("")).Binary(map[op]Operator{opAnd: Differs, opOr: Equals}[o], String(""))
		}
		if _, name, ok := cut(path); ok && s.r.IntN(2) == 0 {
			of := Value{path.n.args[0]}
			list := of.Optional(name).OrValue(List())
			if s.r.IntN(2) == 0 {
				list = Func(FuncOptionalOfNonZeroValue, list).OrValue(List())
				if s.r.IntN(2) == 0 {
					terms = append(terms, Func(FuncDyn, path).Binary(map[op]Operator{opAnd: Differs, opOr: Equals}[o], Null()))
				}
			}
			s.bound = []string{"x"}
			terms = append(terms, list.Macro(map[op]MacroName{opAnd: MacroExists, opOr: MacroAll}[o], Ident("x"), s.bool(1)))
			s.bound = nil
		}
		if s.r.IntN(4) == 0 { // many tests of one text
			f := []Function{FuncStartsWith, FuncEndsWith, FuncContains}[s.r.IntN(3)]
			for range 4 + s.r.IntN(3) {
				test := path.Call(f, String([]string{"a", "b", "ab", "c", "x-", ""}[s.r.IntN(6)]))
				terms = append(terms, s.pick(func() Value { return test }, func() Value { return s.raw(opNot, test) }, func() Value { return s.raw(opNot, test) }))
			}
		}
		for range s.r.IntN(3) { // what tests a text or a number
			test := s.pick(
				func() Value { return path.Eq(s.literal()).Value },
				func() Value { return path.Ne(s.literal()).Value },
				func() Value { return twice(path) },
				func() Value { return path.Binary(Less, s.literal()) },
				func() Value { return path.Binary(GreaterEqual, Int(int64(s.r.IntN(5)-2))) },
				func() Value { return path.In(List(Int(int64(s.r.IntN(3))), Int(1))).Value },
				func() Value { return path.In(s.strings()).Value },
				func() Value { return path.Call(FuncStartsWith, String([]string{"", "a"}[s.r.IntN(2)])) },
				func() Value { return path.Call(FuncMatches, String([]string{"a*", "^a"}[s.r.IntN(2)])) },
			)
			terms = append(terms, s.pick(func() Value { return test }, func() Value { return s.raw(opNot, test) }))
		}
		at := s.r.IntN(len(terms) + 1)
		terms = append(terms[:at:at], append([]Value{s.bool(1)}, terms[at:]...)...)
		if len(terms) < 2 {
			continue
		}
		v := s.raw(o, terms...)
		w := v.Short()
		if Equal(v, w) {
			continue
		}
		p, ok := program(t, e, v.AsBool())
		if !ok {
			continue
		}
		q, ok := program(t, e, w.AsBool())
		if !ok {
			t.Fatalf("%s\nin short %s\ndoes not compile", v, w)
		}
		shorter++
		for range 40 {
			vars := map[string]any{"object": s.object(), "oldObject": s.object()}
			if want, got := outcome(p, vars), outcome(q, vars); !same(want, got) && !moody(p, q, vars) {
				t.Fatalf("%s\nis %v, in short\n%s\nis %v\n%v", v, want, w, got, vars)
			}
		}
	}
	if shorter < 1000 {
		t.Errorf("only %d have a short form", shorter)
	}
}

// twice compares a field with a text that stands in for it where it is missing.
func twice(path Value) Value {
	of, name, ok := cut(path)
	if !ok {
		of, name = path, "a"
	}
	const text = "a text that takes more room than a question"
	return of.Optional(name).OrValue(String(text)).Binary(Equals, String(text))
}

// cut is a selection's operand and name.
func cut(v Value) (of Value, name string, ok bool) {
	if v.n.op != opSelect {
		return v, "", false
	}
	return Value{v.n.args[0]}, v.n.name, true
}
