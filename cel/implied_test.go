package cel

import (
	"math/rand/v2"
	"testing"
)

func TestImpliedTermsAreLeftOut(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ in, want string }{
		{`object.a != 'x' || !(object.a in ['x', 'y'])`, `object.a != 'x'`},
		{`object.?a.orValue('') == 'u' || !(object.?a.orValue('r') in ['r', 'l'])`, `!(object.?a.orValue('r') in ['r', 'l'])`},
		{`object.?a.orValue('u') == 'u' || !(object.?a.orValue('r') in ['r', 'l'])`, `object.?a.orValue('u') == 'u' || !(object.?a.orValue('r') in ['r', 'l'])`},
		{`object.a == 'x' || object.b in ['x', 'y']`, `object.a == 'x' || object.b in ['x', 'y']`},
		{`object.a in ['x'] || object.a in ['x', 'y']`, `object.a in ['x', 'y']`},
		{`object.l.exists(e, e.a == 'x') || object.p == 'y' && object.l.exists(f, f.b == 'z')`, `object.l.exists(e, e.a == 'x' || object.p == 'y' && e.b == 'z')`},
		{`object.l.exists(e, e.a == 'x') || e.p == 'y' && object.l.exists(e, e.b == 'z')`, `object.l.exists(e, e.a == 'x') || e.p == 'y' && object.l.exists(e, e.b == 'z')`},
		{`size(object.l) != 0 && object.l.exists(e, e.a == 'x')`, `object.l.exists(e, e.a == 'x')`},
		{`has(object.l) && object.m.exists(f, object.?l.orValue([]).exists(e, e.a == f))`, `object.m.exists(f, object.?l.orValue([]).exists(e, e.a == f))`},
		{`object.l.exists(e, size(e) != 0) && object.l.exists(e, e.exists(k, k == 'x'))`, `object.l.exists(e, e.exists(k, k == 'x'))`},
		{`e.p == 'x' && object.l.exists(e, e.p == 'x')`, `e.p == 'x' && object.l.exists(e, e.p == 'x')`},
		{`has(object.l) && object.l.exists(e, e.a == 'x') || object.p == 'y' && object.l.exists(f, f.b == 'z')`, `has(object.l) && object.l.exists(e, e.a == 'x') || object.p == 'y' && object.l.exists(f, f.b == 'z')`},
		{`object.p == 'y' && object.l.exists(e, e.a == 'x')`, `object.p == 'y' && object.l.exists(e, e.a == 'x')`},
		{`(object.p == 'y' || object.l.all(e, e.a == 'x')) && object.l.all(e, e.b == 'z')`, `object.l.all(e, (object.p == 'y' || e.a == 'x') && e.b == 'z')`},
	} {
		in := parse(t, c.in).AsBool()
		if got := in.MergeLoops().String(); got != parse(t, c.want).String() {
			t.Errorf("%s\nis %s\nnot %s", c.in, got, c.want)
		}
	}
}

// What is never an error keeps its value when its loops are merged. The values are few, so that
// one often follows from another.
func TestMergingKeepsValues(t *testing.T) {
	t.Parallel()
	e := env(t, Default)
	r := rand.New(rand.NewPCG(1, 2))
	changed := 0
	for range 3600 {
		b := askedAtRandom(r, Ident("object"), 3)
		c := b.MergeLoops()
		if Equal(b.Value, c.Value) {
			continue
		}
		changed++
		p, ok := program(t, e, b.Rooted())
		q, too := program(t, e, c.Rooted())
		if !ok || !too {
			t.Fatalf("%s\n%s\ndo not both compile", b, c)
		}
		for range 12 {
			vars := map[string]any{"object": thingAtRandom(r, 2)}
			if want, got := outcome(p, vars), outcome(q, vars); want == nil || !same(want, got) {
				t.Fatalf("%s\nis %v, and\n%s\nis %v of %v", b, want, c, got, vars)
			}
		}
	}
	if changed < 700 {
		t.Errorf("only %d conditions are put in another way", changed)
	}
}

func TestByName(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{`(o.a.b + o.a.?c.orValue([])).exists(x, x == field)`, `['b', 'c'].exists(field2, o.a[?field2].orValue([]).exists(x, x == field))`},
		{`!(o.b + o.?c.orValue([]) + o.d).all(x, x == 1)`, `!['b', 'c', 'd'].all(field, o[?field].orValue([]).all(x, x == 1))`},
		{`(o.b + o.a.c).exists(x, x == 1)`, `(o.b + o.a.c).exists(x, x == 1)`},
		{`(o.b + o.?c.orValue([1])).exists(x, x == 1)`, `(o.b + o.?c.orValue([1])).exists(x, x == 1)`},
		{`(o.b + o.c).exists(x, x == o.d)`, `(o.b + o.c).exists(x, x == o.d)`},
		{`(p.b + p.c).exists(x, x == 1)`, `(p.b + p.c).exists(x, x == 1)`},
		{`(o.b + o.c).filter(x, x == 1)`, `(o.b + o.c).filter(x, x == 1)`},
		{`o.b.exists(x, x == 1)`, `o.b.exists(x, x == 1)`},
	} {
		if got := parse(t, c.in).ByName("o").String(); got != c.want {
			t.Errorf("%s\nis %s\nnot %s", c.in, got, c.want)
		}
	}
}

// A search in turn finds what one in the sum does, where each list is a list.
func TestByNameKeepsValues(t *testing.T) {
	t.Parallel()
	e := env(t, Default)
	r := rand.New(rand.NewPCG(3, 4))
	for range 500 {
		sum := Ident("object").Optional("l").OrValue(List())
		for range 1 + r.IntN(2) {
			sum = sum.Plus(Ident("object").Optional([]string{"l", "m"}[r.IntN(2)]).OrValue(List()))
		}
		b := sum.Macro([]MacroName{MacroAll, MacroExists}[r.IntN(2)], Ident("e"), askedAtRandom(r, Ident("e"), 1).Rooted().Value).AsBool()
		c := b.ByName("object").AsBool()
		p, ok := program(t, e, b)
		q, too := program(t, e, c)
		if !ok || !too || Equal(b.Value, c.Value) {
			t.Fatalf("%s\n%s", b, c)
		}
		for range 12 {
			object := thingAtRandom(r, 2)
			if more := thingAtRandom(r, 2); r.IntN(2) == 0 && more["l"] != nil {
				object["m"] = more["l"]
			}
			vars := map[string]any{"object": object}
			if want, got := outcome(p, vars), outcome(q, vars); want == nil || !same(want, got) {
				t.Fatalf("%s\nis %v, and\n%s\nis %v of %v", b, want, c, got, vars)
			}
		}
	}
}

// askedAtRandom is a condition on v that is never an error.
func askedAtRandom(r *rand.Rand, v Value, depth int) Bool {
	word := func() Value { return String(string(rune('x' + r.IntN(3)))) }
	switch kind := r.IntN(8); {
	case depth == 0 || kind < 4:
		a := v.Optional("a").Call(FuncOrValue, word())
		switch r.IntN(5) {
		case 0:
			return a.Eq(word())
		case 1:
			return a.Ne(word())
		case 2:
			return a.In(List(word(), word()))
		case 3:
			return Not(a.In(List(word(), word())))
		}
		b := v.Optional("b").Call(FuncOrValue, Lit(r.IntN(2) == 0).Value).AsBool()
		if r.IntN(2) == 0 {
			return Not(b)
		}
		return b
	case kind < 5:
		body := askedAtRandom(r, Ident("e"), 1)
		return v.Optional("l").Call(FuncOrValue, List()).Macro([]MacroName{MacroAll, MacroExists}[r.IntN(2)], Ident("e"), body.Value).AsBool()
	}
	parts := make([]Bool, 2+r.IntN(2))
	for i := range parts {
		parts[i] = askedAtRandom(r, v, depth-1)
	}
	if r.IntN(2) == 0 {
		return And(parts...)
	}
	return Or(parts...)
}

func thingAtRandom(r *rand.Rand, depth int) map[string]any {
	out := map[string]any{}
	if r.IntN(4) > 0 {
		out["a"] = string(rune('x' + r.IntN(4)))
	}
	if r.IntN(3) > 0 {
		out["b"] = r.IntN(2) == 0
	}
	if depth > 0 && r.IntN(4) > 0 {
		l := make([]any, r.IntN(3))
		for i := range l {
			l[i] = thingAtRandom(r, depth-1)
		}
		out["l"] = l
	}
	return out
}
