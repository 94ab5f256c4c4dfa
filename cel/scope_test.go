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
				s.ExistsOne(s.Filter(c.Field("e"), "c", has), "c", has))
		}),
		s.All(s.Map(pods, "c", func(c Value) Value { return c.Field("x") }), "c", has),
		s.Let(pods.Size(), "n", func(n Value) Value { return n.Eq(n).Value }).AsBool(),
		s.LetBool(pods.Size(), "n", func(n Value) Bool { return n.Eq(n) }),
		s.Exists(s.MapIf(pods, "c", func(c Value) (Bool, Value) { return c.Has("a"), c.Field("a") }), "c", has),
	)
	const want = `object.pods.all(c, c.d.exists(c2, c2 == c) || c.e.filter(c2, has(c2.a)).exists_one(c2, has(c2.a))) && ` +
		`object.pods.map(c, c.x).all(c, has(c.a)) && [size(object.pods)].map(n, n == n)[0] && [size(object.pods)].exists(n, n == n) && ` +
		`object.pods.map(c, has(c.a), c.a).exists(c, has(c.a))`
	if got := v.String(); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if _, err := compile(env(t, Oldest), v.String()); err != nil {
		t.Error(err)
	}
	if child := s.Child(); child.Fresh("c") != "c" || s.Fresh("c") != "c" || s.Fresh("c") != "c2" || s.Child().Fresh("c") != "c3" {
		t.Error("a child must know its parent's names, and leave the parent as it is")
	}
}
