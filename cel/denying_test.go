package cel

import (
	"math/rand/v2"
	"testing"

	"github.com/google/cel-go/common/types"
)

func TestDenying(t *testing.T) {
	for _, tt := range []struct{ text, want string }{
		{`dyn({}).a != true`, `false`},
		{`!(has(o.a) || dyn({}).a == true)`, `false`},
		{`has(o.a) ? o.a > 1 : dyn({}).a == true`, `has(o.a) && o.a > 1`},
		{`!(has(o.a) ? o.a > 1 : dyn({}).a == true)`, `!(!has(o.a) || o.a > 1)`},
		{`has(o.a) ? dyn({}).a == true : o.b`, `!has(o.a) && o.b`},
		{`o.a ? true : dyn({}).a == true`, `o.a`},
		{`(has(o.a) ? o.a > 1 : dyn({}).a == true) ? true : o.b`, `has(o.a) && (o.a > 1 ? true : o.b)`},
		{`(has(o.a) ? o.a > 1 : dyn({}).a == true) ? true : has(o.a) && o.b`, `has(o.a) && (o.a > 1 ? true : o.b && true)`}, // an error where o.b is no boolean
		{`!((has(o.a) ? o.a > 1 : dyn({}).a == true) ? o.b : false)`, `!(!has(o.a) || (o.a > 1 ? o.b : false))`},
		{`dyn({}).a == true ? o.b : false`, `false`},
		{`object == null ? true : object.a > 1`, `object == null || object.a > 1`},
		{`o.a > 1 ? true : o.b`, `o.a > 1 ? true : o.b`},
		{`o.l.all(x, has(x.a) ? x.a > 1 : dyn({}).a == true)`, `o.l.all(x, has(x.a) && x.a > 1)`},
		{`o.a == dyn({}).a`, `false`},
		{`o.a in [dyn(null), dyn({})]`, `o.a in [dyn(null), dyn({})]`}, // which is no error
	} {
		if got := parse(t, tt.text).AsBool().Denying().String(); got != tt.want {
			t.Errorf("%s\ngot  %s\nwant %s", tt.text, got, tt.want)
		}
	}
}

// A promise is a shape for tests, too.
func (p *promise) Field(name string) (Shape, bool) {
	if p.fields[name] == nil {
		return p.Elem(), false
	}
	return p.fields[name], p.required[name]
}

func (p *promise) Elem() Shape {
	if p.elem == nil {
		return nil
	}
	return p.elem
}

func (p *promise) Kind() Kind { return p.kind }

// What is asked for is there wherever the rest is read.
func TestDenyingIn(t *testing.T) {
	number, text := &promise{kind: NumberKind}, &promise{kind: StringKind}
	o := &promise{kind: MapKind, fields: map[string]*promise{"n": number, "name": text, "any": {}}, required: map[string]bool{"name": true}}
	for _, tt := range []struct{ text, want string }{
		{`object.n == 1 ? true : params.a`, `has(object.n) && (object.n == 1 || params.a)`},
		{`object.n == 1 ? params.a : true`, `has(object.n) && (object.n != 1 || params.a)`},
		{`object.name == 'a' ? true : params.a`, `object.name == 'a' || params.a`},
		{`!(object.n == 1 ? false : params.a)`, `!(!has(object.n) || object.n != 1 && params.a)`},
		{`object.any > 1 ? true : params.a`, `object.any > 1 ? true : params.a`}, // it may be a text
		{`(has(params.a) ? object.n == 1 : dyn({}).a == true) ? true : params.b`, `has(params.a) && has(object.n) && (object.n == 1 || params.b)`},
	} {
		if got := parse(t, tt.text).AsBool().Denying(Surroundings{Roots: []Root{{Name: "object", Shape: o}}}).String(); got != tt.want {
			t.Errorf("%s\ngot  %s\nwant %s", tt.text, got, tt.want)
		}
	}
}

// Where a schema keeps its promises, what denies is true exactly where the whole is, too.
func TestDenyingInIsTrueWhereTheWholeIs(t *testing.T) {
	t.Parallel()
	e := env(t, Latest)
	asking := 0
	for seed := range uint64(3000) {
		s := &sower{r: rand.New(rand.NewPCG(seed, 37))}
		p := &promise{kind: MapKind, fields: map[string]*promise{}, required: map[string]bool{}}
		for _, name := range []string{"a", "b", "c"} {
			p.fields[name], p.required[name] = s.promised(2), s.r.IntN(2) == 0
		}
		object := spot{at: Ident("object"), p: p}
		test := func() Value { return s.test(s.down(object, 1+s.r.IntN(2))) } // an error where it is not there
		v := s.raw(opCond, test(), s.pick(test, func() Value { return True().Value }), s.pick(test, func() Value { return True().Value }))
		if s.r.IntN(3) == 0 {
			v = s.raw(opNot, s.raw(opCond, test(), test(), False().Value))
		}
		around := Surroundings{Roots: []Root{{Name: "object", Shape: p}}}
		w := v.AsBool().Denying(around)
		long, ok := program(t, e, v.AsBool())
		if !ok || Equal(v, w.Value) {
			continue
		}
		short, ok := program(t, e, w)
		if !ok {
			t.Fatalf("%s\nwhere errors deny %s\ndoes not compile", v, w)
		}
		asking++
		for range 20 {
			vars := map[string]any{"object": s.kept(p)}
			if want, got := outcome(long, vars) == types.True, outcome(short, vars) == types.True; want != got && !moody(long, short, vars) {
				t.Fatalf("%s\nis true: %t, where errors deny\n%s\nis true: %t\n%v", v, want, w, got, vars)
			}
		}
	}
	if asking < 500 {
		t.Errorf("only %d say something else", asking)
	}
}

// What denies is true exactly where the whole is, and is no new error where nothing is known.
func TestDenyingIsTrueWhereTheWholeIs(t *testing.T) {
	t.Parallel()
	e := env(t, Latest)
	fault := parse(t, `dyn({}).missing == true`)
	other := 0
	for seed := range uint64(4000) {
		s := &sower{r: rand.New(rand.NewPCG(seed, 31))}
		part := func() Value {
			return s.pick(func() Value { return s.bool(1) }, func() Value { return s.bool(2) }, func() Value { return fault },
				func() Value { return Lit(s.r.IntN(2) == 0).Value },
				func() Value { return s.selected().In(List(Func(FuncDyn, Map()), Func(FuncDyn, s.literal()))).Value },
				func() Value { return s.raw(opCond, s.bool(1), s.bool(1), fault) })
		}
		v := s.raw(opCond, part(), part(), part())
		if s.r.IntN(2) == 0 {
			v = s.raw([]op{opAnd, opOr}[s.r.IntN(2)], part(), s.raw(opNot, v))
		}
		w := v.AsBool().Denying()
		p, ok := program(t, e, v.AsBool())
		if !ok || Equal(v, w.Value) {
			continue
		}
		q, ok := program(t, e, w)
		if !ok {
			t.Fatalf("%s\nwhere errors deny %s\ndoes not compile", v, w)
		}
		other++
		for range 20 {
			vars := map[string]any{"object": s.object(), "oldObject": s.object()}
			if want, got := outcome(p, vars) == types.True, outcome(q, vars) == types.True; want != got && !moody(p, q, vars) {
				t.Fatalf("%s\nis true: %t, where errors deny\n%s\nis true: %t\n%v", v, want, w, got, vars)
			}
		}
	}
	if other < 1000 {
		t.Errorf("only %d say something else", other)
	}
}
