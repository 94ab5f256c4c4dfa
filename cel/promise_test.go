package cel

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// A promise is what a schema says of the values at a place.
type promise struct {
	kind     Kind
	fields   map[string]*promise // of an object
	required map[string]bool
	elem     *promise // of a list or a map
}

// promised is a random promise.
func (s *sower) promised(depth int) *promise {
	n := s.r.IntN(12)
	if depth > 0 && s.r.IntN(3) > 0 {
		n = 7 + s.r.IntN(5)
	}
	if depth == 0 {
		n %= 7
	}
	switch {
	case n < 1:
		return &promise{kind: BoolKind}
	case n < 4:
		return &promise{kind: StringKind}
	case n < 6:
		return &promise{kind: NumberKind}
	case n < 7:
		return &promise{}
	case n < 8:
		return &promise{kind: ListKind, elem: s.promised(depth - 1)}
	case n < 9:
		return &promise{kind: MapKind, elem: s.promised(depth - 1)}
	}
	p := &promise{kind: MapKind, fields: map[string]*promise{}, required: map[string]bool{}}
	for _, name := range []string{"a", "b", "c"} {
		p.fields[name], p.required[name] = s.promised(depth-1), s.r.IntN(2) == 0
	}
	return p
}

// kept is a value that keeps the promise.
func (s *sower) kept(p *promise) any {
	switch {
	case p.kind == BoolKind:
		return s.r.IntN(2) == 0
	case p.kind == StringKind:
		return []string{"a", "b", "x-y", ""}[s.r.IntN(4)]
	case p.kind == NumberKind:
		return int64(s.r.IntN(4) - 1)
	case p.kind == ListKind:
		l := make([]any, s.r.IntN(3))
		for i := range l {
			l[i] = s.kept(p.elem)
		}
		return l
	case p.elem != nil:
		m := map[string]any{}
		for _, k := range []string{"a", "x-y"} {
			if s.r.IntN(2) == 0 {
				m[k] = s.kept(p.elem)
			}
		}
		return m
	case p.fields != nil:
		m := map[string]any{}
		for k, f := range p.fields {
			if p.required[k] || s.r.IntN(2) == 0 {
				m[k] = s.kept(f)
			}
		}
		return m
	}
	return s.datum(1)
}

// A spot is where a value stands, and the conditions in which it is there.
type spot struct {
	at   Value
	p    *promise
	asks []Value
}

// down goes some steps down from a spot.
func (s *sower) down(x spot, steps int) spot {
	for range steps {
		next := spot{asks: slices.Clone(x.asks)}
		switch p := x.p; {
		case p.kind == ListKind:
			i := int64(s.r.IntN(2))
			cond := x.at.Size().Binary(Greater, Int(i))
			if i == 0 && s.r.IntN(3) == 0 {
				cond = x.at.Size().Binary(Differs, Int(0))
			}
			next.at, next.p, next.asks = x.at.Index(Int(i)), p.elem, append(next.asks, cond)
		case p.elem != nil:
			k := []string{"a", "x-y"}[s.r.IntN(2)]
			next.at, next.p, next.asks = x.at.Field(k), p.elem, append(next.asks, x.at.Has(k).Value)
			if s.key.n != nil && s.r.IntN(2) == 0 {
				next.at, next.asks = x.at.Index(s.key), append(slices.Clone(x.asks), s.key.In(x.at).Value)
			}
		case p.fields != nil:
			k := []string{"a", "b", "c"}[s.r.IntN(3)]
			next.at, next.p = x.at.Field(k), p.fields[k]
			if p.required[k] {
				next.at = next.at.Sure()
			} else {
				next.asks = append(next.asks, x.at.Has(k).Value)
			}
		case p.kind == Unknown:
			k := []string{"a", "b"}[s.r.IntN(2)]
			next.at, next.p = x.at.Field(k), &promise{}
			if s.r.IntN(2) == 0 {
				next.asks = append(next.asks, x.at.Type().Eq(Ident("map")).Value)
			}
			next.asks = append(next.asks, x.at.Has(k).Value)
		default:
			return x
		}
		next.at = next.at.OfKind(next.p.kind)
		x = next
	}
	return x
}

// test asks something of the value at a spot.
func (s *sower) test(x spot) Value {
	quantifier := []MacroName{MacroAll, MacroExists}[s.r.IntN(2)]
	if x.at.n.op != opCond && s.r.IntN(40) == 0 { // of another kind
		return s.test(spot{at: x.at, p: &promise{kind: []Kind{BoolKind, NumberKind, StringKind, ListKind}[s.r.IntN(4)], elem: &promise{}}})
	}
	switch p := x.p; {
	case p.kind == BoolKind:
		return s.pick(func() Value { return x.at }, func() Value { return x.at }, func() Value { return x.at.Eq(Lit(s.r.IntN(2) == 0).Value).Value })
	case p.kind == NumberKind:
		n := func() Value { return Int(int64(s.r.IntN(4) - 1)) }
		return s.pick(
			func() Value {
				return x.at.Binary([]Operator{Equals, Differs, Less, LessEqual, Greater, GreaterEqual}[s.r.IntN(6)], n())
			},
			func() Value { return x.at.In(List(n(), n())).Value },
		)
	case p.kind == StringKind:
		c := func() Value { return String([]string{"a", "b", "", "a text that is rather long"}[s.r.IntN(4)]) }
		return s.pick(
			func() Value { return x.at.Binary([]Operator{Equals, Differs}[s.r.IntN(2)], c()) },
			func() Value { return x.at.In(s.strings()).Value },
			func() Value { return x.at.In(List(c(), c())).Value },
			func() Value {
				return x.at.Call([]Function{FuncStartsWith, FuncEndsWith, FuncContains}[s.r.IntN(3)], c())
			},
			func() Value { return x.at.Call(FuncMatches, String([]string{"a*", "^a"}[s.r.IntN(2)])) },
			func() Value { return x.at.Size().Binary(Greater, Int(int64(s.r.IntN(2)))) },
		)
	case p.kind == ListKind:
		return s.pick(
			func() Value { return s.literal().In(x.at).Value },
			func() Value {
				return x.at.Size().Binary([]Operator{Greater, Differs, Equals, LessEqual}[s.r.IntN(4)], Int(int64(s.r.IntN(2))))
			},
			func() Value { return s.loop(x.at, p.elem, quantifier) },
			func() Value { return s.loop(x.at, p.elem, quantifier) },
		)
	case p.elem != nil:
		return s.pick(
			func() Value { return x.at.Has("x-y").Value },
			func() Value { return x.at.Size().Binary([]Operator{Greater, Differs}[s.r.IntN(2)], Int(0)) },
			func() Value { return s.loop(x.at, &promise{kind: StringKind}, quantifier) },
			func() Value {
				return x.at.Macro(quantifier, Ident("k"), s.test(spot{at: x.at.Index(Ident("k")).OfKind(p.elem.kind), p: p.elem}))
			},
		)
	}
	return s.pick(func() Value { return x.at.Has("a").Value }, func() Value { return x.at.Ne(Null()).Value }, func() Value { return x.at.Eq(s.literal()).Value })
}

// loop asks something of the elements of a list.
func (s *sower) loop(list Value, elem *promise, quantifier MacroName) Value {
	x := []string{"x", "y"}[s.r.IntN(2)]
	return list.Macro(quantifier, Ident(x), s.asked(spot{at: Ident(x).OfKind(elem.kind), p: elem}, 0))
}

// asked is a condition on what is at some place below a spot.
func (s *sower) asked(x spot, depth int) Value {
	if depth > 0 && s.r.IntN(2) == 0 {
		args := []Value{s.asked(x, depth-1), s.asked(x, depth-1)}
		return s.pick(func() Value { return s.raw(opAnd, args...) }, func() Value { return s.raw(opOr, args...) },
			func() Value { return s.raw(opNot, args[0]) },
			func() Value { return s.raw(opCond, args[0], args[1], s.asked(x, 0)) })
	}
	y := s.down(x, 1+s.r.IntN(4))
	var terms []Value
	for _, g := range y.asks[len(x.asks):] {
		if s.r.IntN(12) > 0 {
			terms = append(terms, g)
		}
	}
	for range 1 + s.r.IntN(8)/6 {
		terms = append(terms, s.test(y))
	}
	if s.r.IntN(8) == 0 {
		terms = append(terms, s.test(s.down(x, 2)))
	}
	if s.r.IntN(8) == 0 {
		s.r.Shuffle(len(terms), func(i, j int) { terms[i], terms[j] = terms[j], terms[i] })
	}
	last := len(terms) - 1
	switch s.r.IntN(5) {
	case 0, 1:
		for i, t := range terms {
			if i < last || s.r.IntN(2) == 0 {
				terms[i] = Not(t.AsBool()).Value
			}
		}
		return s.chained(opOr, terms)
	case 2:
		if s.r.IntN(2) == 0 {
			terms[last] = Not(terms[last].AsBool()).Value
		}
	case 3:
		c := s.chained(opAnd, append(slices.Clone(y.asks[len(x.asks):]), True().Value))
		if s.r.IntN(2) == 0 {
			return s.raw(opCond, c, s.test(y), s.pick(func() Value { return s.test(y) }, func() Value { return Lit(s.r.IntN(2) == 0).Value }))
		}
		other := s.other(y.p)
		w := s.raw(opCond, c, y.at, other)
		if y.p.kind == Unknown || y.p.fields != nil || y.p.kind == ListKind || y.p.kind == MapKind || s.r.IntN(2) == 0 {
			w = Func(FuncDyn, w)
		}
		return s.test(spot{at: w, p: y.p})
	}
	return s.chained(opAnd, terms)
}

// chained is the terms as a chain, without those that say nothing.
func (s *sower) chained(o op, terms []Value) Value {
	terms = slices.DeleteFunc(terms, func(v Value) bool { return v.n.op == opBool && v.AsBool().IsTrue() })
	switch len(terms) {
	case 0:
		return True().Value
	case 1:
		return terms[0]
	}
	return s.raw(o, terms...)
}

// other is a literal that may stand in where a value is missing.
func (s *sower) other(p *promise) Value {
	switch p.kind {
	case BoolKind:
		return Lit(s.r.IntN(2) == 0).Value
	case NumberKind:
		return Int(int64(s.r.IntN(3)))
	case StringKind:
		return String([]string{"a", ""}[s.r.IntN(2)])
	case ListKind:
		return List()
	case MapKind:
		return Map()
	}
	return s.literal()
}

// Where a schema keeps what the nodes promise, a short form has the value of the long one.
func TestShortKeepsPromised(t *testing.T) {
	t.Parallel()
	e := env(t, Latest)
	shorter := 0
	for seed := range uint64(3000) {
		s := &sower{r: rand.New(rand.NewPCG(seed, 23))}
		p := &promise{kind: MapKind, fields: map[string]*promise{}, required: map[string]bool{}}
		for _, name := range []string{"a", "b", "c"} {
			p.fields[name], p.required[name] = s.promised(3), s.r.IntN(2) == 0
		}
		s.key = Value{}
		for _, name := range []string{"a", "b", "c"} {
			if p.fields[name].kind == StringKind {
				s.key = Ident("object").Field(name).OfKind(StringKind)
			}
		}
		v := s.asked(spot{at: Ident("object").OfKind(MapKind), p: p}, 2)
		w := v.Short()
		if s.r.IntN(3) == 0 {
			w = Simplify(v).Short()
		}
		if Equal(v, w) {
			continue
		}
		long, ok := program(t, e, v.AsBool())
		if !ok {
			continue
		}
		short, ok := program(t, e, w.AsBool())
		if !ok {
			t.Fatalf("%s\nin short %s\ndoes not compile", v, w)
		}
		shorter++
		for range 40 {
			vars := map[string]any{"object": s.kept(p)}
			if want, got := outcome(long, vars), outcome(short, vars); !same(want, got) && !moody(long, short, vars) {
				t.Fatalf("%s\nis %v, in short\n%s\nis %v\n%v", v, want, w, got, vars)
			}
		}
	}
	if shorter < 1000 {
		t.Errorf("only %d have a short form", shorter)
	}
}
