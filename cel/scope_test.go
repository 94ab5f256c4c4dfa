package cel

import (
	"testing"
)

func TestScopeNames(t *testing.T) {
	for _, tt := range []struct{ hint, want string }{
		{"c", "c2"}, {"c3", "c2"}, {"c4", "c4"}, {"object", "object2"}, {"variables", "variables2"}, {"in", "in2"},
		{"namespace", "namespace2"}, {"all", "all2"}, {"string", "string2"}, {"", "x"}, {"9", "x9"},
		{"a-b.c", "abc"}, {"é", "x"}, {"container", "container"},
	} {
		s := &Scope{}
		s.Reserve("c", "c3")
		if got := s.Fresh(tt.hint); got != tt.want {
			t.Errorf("%q: got %s, want %s", tt.hint, got, tt.want)
		}
	}
}

// Quantifiers beside each other have the same short name; one within another
// does not hide it.
func TestScopeNesting(t *testing.T) {
	s := &Scope{}
	pods := Ident("object").Field("pods")
	has := func(x Value) Bool { return x.Has("a") }
	v := And(
		s.All(pods, "c", func(c Value) Bool {
			return Or(
				s.Exists(c.Field("d"), "c", func(d Value) Bool { return d.Eq(c) }),
				s.Exists(s.Filter(c.Field("e"), "c", has), "c", has))
		}),
		s.All(s.Map(pods, "c", func(c Value) Value { return c.Field("x") }), "c", has),
		s.Exists(s.MapIf(pods, "c", has, func(c Value) Value { return c.Field("a") }), "c", has),
	)
	const want = `object.pods.all(c, c.d.exists(c2, c2 == c) || c.e.filter(c2, has(c2.a)).exists(c2, has(c2.a))) && ` +
		`object.pods.map(c, c.x).all(c, has(c.a)) && ` +
		`object.pods.map(c, has(c.a), c.a).exists(c, has(c.a))`
	if got := v.String(); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if _, err := compile(env(t, Oldest), v.String()); err != nil {
		t.Error(err)
	}
}

// A quantifier that says nothing of its elements goes, and one that looks for a
// literal is a membership.
func TestQuantify(t *testing.T) {
	s := &Scope{}
	list := Ident("object").Field("list")
	constant := func(b bool) func(Value) Bool { return func(Value) Bool { return Lit(b) } }
	for _, tt := range []struct {
		got  Bool
		want string
	}{
		{s.All(list, "x", constant(true)), `true`},
		{s.All(list, "x", constant(false)), `object.list.all(x, false)`},
		{s.Exists(list, "x", constant(false)), `false`},
		{s.Exists(list, "x", func(x Value) Bool { return x.Eq(Int(1)) }), `1 in object.list`},
		{s.All(list, "x", func(x Value) Bool { return x.Ne(String("a")) }), `!('a' in object.list)`},
		{s.Exists(list, "x", func(x Value) Bool { return Ident("y").Eq(Int(1)) }), `object.list.exists(x, y == 1)`},
	} {
		if tt.got.String() != tt.want {
			t.Errorf("got %s, want %s", tt.got, tt.want)
		}
	}
}

// What a scope binds is known while its body is built, and no longer: also where
// building it panics.
func TestBinds(t *testing.T) {
	s := &Scope{}
	func() {
		defer func() { _ = recover() }()
		s.All(Ident("object"), "c", func(c Value) Bool {
			if s.Empty() || !s.Binds(c.Field("a")) || s.Binds(Ident("d")) {
				t.Error("c is bound, and d is not")
			}
			panic("stop")
		})
	}()
	if !s.Empty() {
		t.Error("a name is in use after its body")
	}
}
