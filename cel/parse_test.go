package cel

import (
	"errors"
	"testing"

	"github.com/kvap/kvap/diag"
)

// canonical are expressions that print as they are written here.
func canonical() []string {
	return []string{
		`object.spec.replicas <= 5`,
		`has(object.spec.x) && object.spec.x.all(c, !c.image.endsWith(':latest') || c.name in ['a', 'b'])`,
		`object.?spec.?a[?0].orValue(optional.none()).hasValue()`,
		`object.spec.exists(k, v, k == 'a' && v == 1)`,
		`object.spec.map(x, x.a > 1, x.b).transformMap(k, v, k != 1, v)`,
		`{'a': [1, ?optional.of(2)], ?'b': optional.none(), 1u: b'\x00', 'c': {}}`,
		`Object{metadata: Object.metadata{labels: {'a': 'b'}, ?name: optional.none()}}`,
		`sets.contains(['a'], ip.isCanonical('a') ? ['b'] : [])`,
		`(a ? b : c) ? d : e ? f : g`,
		`-(5) - -5 - (1 - 2) * 3 % x[-1]`,
		`-x + -(-x) + -(2.0)`,
		`!(!x) && !(a == b) && (a == b) == c && a == (b == c)`,
		`(a || b) && (c || d && e)`,
		`a || b && c || (d ? e : f)`,
		`(-5).abs() + 5.abs()`,
		`.object.x == .f(1)`,
		`'it' + "it's" + r'\d' + 'a\nb'`,
		`(x in y) == z`,
		`x in (y == z)`,
		`object['in'].namespace.as.package[?'a-b']`,
		`dyn([1, 2]).sortBy(x, -x).optMap(y, y).value()`,
		`[[1]].exists_one(x, x.existsOne(y, y == 1))`,
	}
}

func TestParsePrints(t *testing.T) {
	for _, text := range canonical() {
		v, err := Parse(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if got := v.String(); got != text {
			t.Errorf("got %s, want %s", got, text)
		}
		for _, width := range []int{1, 20, 80} {
			broken := v.Text(width)
			if w, err := Parse(broken); err != nil || !Equal(v, w) {
				t.Errorf("width %d: %s: %v", width, broken, err)
			}
		}
	}
}

func TestParseErrors(t *testing.T) {
	for _, tt := range []struct{ text, want string }{
		{" ", `1:1: the expression is empty [KV112]`},
		{"a ==", `1:5: mismatched input end of the expression [KV112]`},
		{"a &&\n  b c", `2:5: extraneous input 'c' expecting <EOF> [KV112]`},
		{"a.`b`", "1:3: unsupported syntax: '`' [KV112]"},
		{"has(a)", `1:4: has() takes one field selection, as in has(object.spec) [KV112]`},
		{"has(a['b'])", `1:4: has() takes one field selection, as in has(object.spec); of a key, write 'k' in m [KV112]`},
		{"a.all(b.c, true)", `1:8: argument 1 of all() must be the name of a variable [KV112]`},
		{"package.x", `1:1: reserved identifier: package [KV112]`},
		{"'a\xff'", `: the expression is no valid UTF-8 [KV112]`},
	} {
		_, err := Parse(tt.text)
		if err == nil || err.Error() != tt.want {
			t.Errorf("%q: got %v, want %s", tt.text, err, tt.want)
		}
		if d := (diag.Diagnostic{}); err != nil && !errors.As(err, &d) {
			t.Errorf("%q: the error is no diagnostic", tt.text)
		}
	}
}

// FuzzPrint holds the printer to its law: what is printed and parsed is the same
// tree, however its lines are broken, and prints the same again.
func FuzzPrint(f *testing.F) {
	for _, text := range canonical() {
		f.Add(text)
	}
	for _, name := range names() {
		f.Add(name)
		o := Ident("o")
		f.Add(And(o.Has(name), o.Field(name).Field(name).Eq(String(name))).String())
		f.Add(Map(Entry{Maybe(o.Optional(name)), Bytes([]byte(name))}).Index(String(name)).String())
	}
	f.Fuzz(func(t *testing.T, text string) {
		v, err := Parse(text)
		if err != nil {
			// No expression: the text may still be a name, and a literal.
			v = Ident("o").Has(text).AsBool().Value
			v = List(v, Ident("o").Optional(text).Field(text), String(text), Bytes([]byte(text)))
		}
		checkFixpoint(t, v)
	})
}

func checkFixpoint(t *testing.T, v Value) {
	t.Helper()
	for _, printed := range []string{v.String(), v.Text(1), v.Text(40)} {
		w, err := Parse(printed)
		if err != nil {
			t.Fatalf("printed %s\n%v", printed, err)
		}
		if !Equal(v, w) {
			t.Fatalf("%s came back as %s", printed, w)
		}
	}
}
