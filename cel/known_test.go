package cel

import (
	"math/rand/v2"
	"testing"

	celgo "github.com/google/cel-go/cel"
)

// A sketch is a shape for tests that says what kind of value there is.
type sketch struct {
	kind   Kind
	fields map[string]*sketch
	always map[string]bool
	elem   *sketch
}

func (f *sketch) Kind() Kind { return f.kind }

func (f *sketch) Field(name string) (Shape, bool) {
	if s, ok := f.fields[name]; ok {
		return s, f.always[name]
	}
	return nil, false
}

func (f *sketch) Elem() Shape {
	if f.elem == nil {
		return nil
	}
	return f.elem
}

func sketched() *sketch {
	flag, text, free := &sketch{kind: BoolKind}, &sketch{kind: StringKind}, &sketch{}
	part := &sketch{kind: MapKind, fields: map[string]*sketch{"a": flag, "b": text, "c": free}, always: map[string]bool{"b": true}}
	inner := &sketch{kind: MapKind, fields: map[string]*sketch{"a": free, "b": {kind: ListKind, elem: part}, "c": part}, always: map[string]bool{"c": true}}
	return &sketch{
		kind:   MapKind,
		fields: map[string]*sketch{"a": flag, "b": {kind: ListKind, elem: part}, "c": inner, "in": free, "x-y": {kind: MapKind, elem: text}},
		always: map[string]bool{"b": true},
	}
}

// filled is a value of a shape.
func (s *sower) filled(f *sketch) any {
	switch {
	case f.kind == BoolKind:
		return s.r.IntN(2) == 0
	case f.kind == StringKind:
		return []string{"a", "b", "c"}[s.r.IntN(3)]
	case f.kind == ListKind:
		l := make([]any, s.r.IntN(3))
		for i := range l {
			l[i] = s.filled(f.elem)
		}
		return l
	case f.kind != MapKind:
		return s.datum(1)
	}
	m := map[string]any{}
	for _, name := range []string{"a", "b", "c", "in", "x-y"} {
		field := f.fields[name]
		if f.fields == nil {
			field = f.elem
		}
		if field != nil && (f.always[name] || s.r.IntN(2) == 0) {
			m[name] = s.filled(field)
		}
	}
	return m
}

func sketchedSurroundings() Surroundings {
	return Surroundings{Roots: []Root{{"object", sketched(), false}, {"oldObject", sketched(), true}}}
}

func TestSimplifyIn(t *testing.T) {
	around := sketchedSurroundings()
	around.Variables = func(name string) (Value, bool) { return parse(t, `dyn(object.c.a.l)`), name == "l" }
	for _, tt := range []struct{ text, want string }{
		{`object.b.all(x, x.b == 'a') ? true : object.c.a == 1`, `object.b.all(x, x.b == 'a') || object.c.a == 1`},
		{`object.b.all(x, x.c == 1) ? true : object.c.a == 1`, `object.b.all(x, x.c == 1) ? true : object.c.a == 1`},
		{`oldObject.b.all(x, x.b == 'a') ? true : object.c.a == 1`, `oldObject.b.all(x, x.b == 'a') ? true : object.c.a == 1`},
		{`oldObject != null && oldObject.b.all(x, x.b == 'a') ? object.c.a == 1 : false`, `oldObject != null && oldObject.b.all(x, x.b == 'a') && object.c.a == 1`},
		{`object.b.all(x, has(x.a) ? x.a : true)`, `object.b.all(x, !has(x.a) || x.a)`},
		{`has(object.c) && has(object.c.a) && has(object.c.a.l) ? type(variables.l) == list : false`, `has(object.c) && has(object.c.a) && has(object.c.a.l) ? type(variables.l) == list : false`},
		{`has(object.c) && has(object.c.a) && type(object.c.a) == map && has(object.c.a.l) ? type(variables.l) == list : false`, `has(object.c) && has(object.c.a) && type(object.c.a) == map && has(object.c.a.l) && type(variables.l) == list`},
		{`'a' in oldObject ? object.b == [] : false`, `'a' in oldObject ? object.b == [] : false`},
		{`oldObject != null ? ('a' in oldObject ? object.b == [] : false) : false`, `oldObject != null && 'a' in oldObject && object.b == []`},
		{`type(object.c) == map ? false : false`, `type(object.c) == map ? false : false`},
		{`has(object.c) && has(object.c.a) ? false : false`, `false`},
	} {
		if got := parse(t, tt.text).AsBool().SimplifyIn(around).String(); got != tt.want {
			t.Errorf("%s\ngot  %s\nwant %s", tt.text, got, tt.want)
		}
	}
}

// What is simplified by what is known of the request has the same outcome on every
// request of which that is so.
func TestSimplifyInKeepsOutcome(t *testing.T) {
	t.Parallel()
	e := env(t, Latest)
	compiled, shorter := 0, 0
	for seed := range uint64(1000) {
		s := &sower{r: rand.New(rand.NewPCG(seed, 4))}
		b := s.bool(3).AsBool()
		out := b.SimplifyIn(sketchedSurroundings())
		p, ok := program(t, e, b)
		if !ok {
			continue
		}
		q, ok := program(t, e, out)
		if !ok {
			t.Fatalf("%s\nsimplified %s\ndoes not compile", b, out)
		}
		compiled++
		if out.n.size < b.Simplify().n.size {
			shorter++
		}
		agreeOnSketches(t, s, p, q, b, out)
	}
	if compiled < 500 || shorter == 0 {
		t.Errorf("%d expressions compile, %d are shorter by what is known", compiled, shorter)
	}
}

func agreeOnSketches(t *testing.T, s *sower, p, q celgo.Program, b, out Bool) {
	t.Helper()
	for range 20 {
		vars := map[string]any{"object": s.filled(sketched()), "oldObject": s.filled(sketched())}
		if s.r.IntN(3) == 0 {
			vars["oldObject"] = nil
		}
		if want, got := outcome(p, vars), outcome(q, vars); !same(want, got) && !moody(p, q, vars) {
			t.Fatalf("%s\nis %v, simplified\n%s\nis %v\n%v", b, want, out, got, vars)
		}
	}
}
