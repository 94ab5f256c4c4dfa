package cel

import (
	"math"
	"testing"
)

func TestString(t *testing.T) {
	o := Ident("object")
	a, b, c := Ident("a").AsBool(), Ident("b").AsBool(), Ident("c").AsBool()
	for _, tt := range []struct {
		v    Value
		want string
	}{
		{o.Field("spec").Field("in"), `object.spec['in']`},
		{o.Field("metadata").Field("namespace"), `object.metadata.namespace`},
		{o.Field("a-b").Field("x"), `object['a-b'].x`},
		{o.Has("spec").Value, `has(object.spec)`},
		{o.Has("true").Value, `'true' in object`},
		{o.Optional("spec").Optional("a.b").OrValue(List()), `object.?spec[?'a.b'].orValue([])`},
		{And(a, Or(b, c)).Value, `a && (b || c)`},
		{Or(a, And(b, c)).Value, `a || b && c`},
		{Not(And(a, b)).Value, `!(a && b)`},
		{Not(Ident("x").Has("y")).Value, `!has(x.y)`},
		{Ident("x").Binary(Minus, Ident("y").Binary(Minus, Ident("z"))), `x - (y - z)`},
		{Ident("x").Binary(Minus, Ident("y")).Binary(Minus, Ident("z")), `x - y - z`},
		{Ident("x").Plus(Ident("y")).Binary(Times, Int(-3)), `(x + y) * -3`},
		{Int(-3).Field("x"), `(-3).x`},
		{mk(opNeg, "", Int(3)), `-(3)`},
		{Int(math.MinInt64), `-9223372036854775808`},
		{Double(1), `1.0`},
		{Double(1e21), `1e+21`},
		{Double(math.Copysign(0, -1)), `-0.0`},
		{Cond(a, Int(1), Cond(b, Int(2), Int(3))), `a ? 1 : b ? 2 : 3`},
		{Cond(CondBool(a, b, c), Int(1), Int(2)), `(a ? b : c) ? 1 : 2`},
		{String("it's"), `"it's"`},
		{String(`it's "it"`), `'it\'s "it"'`},
		{String("a\nb\x00"), `'a\nb\u0000'`},
		{String(`^[^\s]+$`), `r'^[^\s]+$'`},
		{String("a\xffb"), "'a\uFFFDb'"},
		{Bytes([]byte("a\xff'")), `b'a\xff\''`},
		{Map(Entry{String("a"), Int(1)}, Entry{Maybe(String("b")), Ident("x")}), `{'a': 1, ?'b': x}`},
	} {
		if got := tt.v.String(); got != tt.want {
			t.Errorf("got %s, want %s", got, tt.want)
		}
	}
}

func TestText(t *testing.T) {
	s := &Scope{}
	pinned := s.All(Ident("object").Field("spec").Optional("containers").OrValue(List()), "c", func(c Value) Bool {
		return And(c.Has("image"), Not(c.Field("image").EndsWith(String(":latest"))), Or(c.Field("name").In(Strings("abcdefghijklmn", "opqrstuvwxyzabcdef", "ghijklmnopqrstuvwxyzabcdefghijk", "lmnopqr")),
			s.Exists(c.Field("env"), "c", func(e Value) Bool { return And(e.Has("name"), e.Field("name").StartsWith(c.Field("image"))) })))
	})
	const want = `object.spec.?containers.orValue([]).all(c,
  has(c.image) &&
  !c.image.endsWith(':latest') &&
  (
    c.name in [
      'abcdefghijklmn', 'opqrstuvwxyzabcdef', 'ghijklmnopqrstuvwxyzabcdefghijk',
      'lmnopqr'
    ] ||
    c.env.exists(c2, has(c2.name) && c2.name.startsWith(c.image))
  )
)`
	if got := pinned.Text(80); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// A path that is too long for a line goes on below, before a selection or a call; a short
// literal stays behind what it is compared with.
func TestTextOfPaths(t *testing.T) {
	const text = `dyn(object.spec).?template.orValue(object).spec.?securityContext.?sysctls.orValue([]).exists(s, s.name == 'kernel.sysrq') && object.metadata.?annotations[?'a-long-key-of-many-words'].orValue('none') == 'none'`
	for width, want := range map[int]string{
		200: `dyn(object.spec).?template.orValue(object).spec.?securityContext.?sysctls.orValue([]).exists(s, s.name == 'kernel.sysrq') &&
object.metadata.?annotations[?'a-long-key-of-many-words'].orValue('none') == 'none'`,
		75: `dyn(object.spec).?template.orValue(object).spec.?securityContext
  .?sysctls.orValue([]).exists(s, s.name == 'kernel.sysrq') &&
object.metadata
  .?annotations[?'a-long-key-of-many-words'].orValue('none') == 'none'`,
	} {
		if got := parse(t, text).Text(width); got != want {
			t.Errorf("%d columns: got\n%s\nwant\n%s", width, got, want)
		}
	}
}
