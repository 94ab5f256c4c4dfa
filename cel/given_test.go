package cel_test

import (
	"testing"

	"github.com/kvap/kvap/cel"
)

// What a condition tells to be there is not asked for where it holds.
func TestKnowing(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ cond, expr, want string }{
		{"has(object.spec.a)", "object.spec.?a.orValue([]).map(x, x)", "object.spec.a.map(x, x)"},
		{"has(object.spec.a)", "object.spec.?b.orValue('')", "object.spec.?b.orValue('')"},
		{"!has(object.spec.a)", "object.spec.?a.orValue('')", "object.spec.?a.orValue('')"},
		{"object.?spec.?a.hasValue()", "object.?spec.?a.orValue('') + object.?spec.?b.orValue('')", "object.spec.a + object.spec.?b.orValue('')"},
		{"object.?spec.?a.hasValue()", "object.?spec.?a.?c.?d.orValue('')", "object.spec.a.?c.?d.orValue('')"},
		{"object.?spec.?a.hasValue()", "object.?spec.?a.hasValue() ? [] : [1]", "true ? [] : [1]"},
		{"size(o.?l.orValue([])) > 0", "has(o.l) ? 1 : 2", "true ? 1 : 2"},
		{"size(o.?l.orValue([])) >= 1", "has(o.l) ? 1 : 2", "true ? 1 : 2"},
		{"size(o.?l.orValue([])) >= 0", "has(o.l) ? 1 : 2", "has(o.l) ? 1 : 2"},
		{"o.?l.orValue([]).exists(x, x == 1)", "o.?l.orValue([])", "o.l"},
		{"o.?l.orValue([]).all(x, x == 1)", "o.?l.orValue([])", "o.?l.orValue([])"},
		{"o.?l.orValue('') == 'a'", "o.?l.orValue('b')", "o.l"},
		{"o.?l.orValue('') != ''", "o.?l.orValue('b')", "o.l"},
		{"o.?l.orValue('') != 'a'", "o.?l.orValue('b')", "o.?l.orValue('b')"},
		{"o.?l.orValue('a') == 'a'", "o.?l.orValue('b')", "o.?l.orValue('b')"},
		{"o.m[?'k'].orValue('') == 'a'", "o.m[?'k'].orValue('b') + o.?m.?k.orValue('')", "o.m['k'] + o.m.?k.orValue('')"},
		{"o.a.b == 1", "o.?a.?b.orValue(2)", "o.a.b"},
		{"o.a == 1 || o.b == 1", "o.?a.orValue(2)", "o.?a.orValue(2)"},
		{"!(o.a == 1 || o.b == 1)", "o.?a.orValue(2)", "o.a"},
		{"o.a == 1 && o.b == 1", "o.?a.orValue(2)", "o.a"},
		{"has(o.a) ? o.b == 1 : false", "o.?a.orValue(2) + o.?b.orValue(2)", "o.a + o.b"},
		{"has(o.a) ? o.b == 1 : true", "o.?a.orValue(2) + o.?b.orValue(2)", "o.?a.orValue(2) + o.?b.orValue(2)"},
		{"has(o.a) ? o.b == 1 : dyn({}).list == true", "o.?a.orValue(2) + o.?b.orValue(2)", "o.a + o.b"},
		{"has(o.a) ? dyn({}).list == true : o.b == 1", "o.?a.orValue(2) + o.?b.orValue(2)", "o.?a.orValue(2) + o.b"},
		{"o.l.exists(x, has(x.a))", "o.?l.orValue([]).filter(x, has(x.a))", "o.l.filter(x, has(x.a))"},
		{"o.?a.orValue('') in ['', 'x']", "o.?a.orValue('b')", "o.?a.orValue('b')"},
	} {
		cond, err := cel.Parse(tt.cond)
		if err != nil {
			t.Fatal(err)
		}
		expr, err := cel.Parse(tt.expr)
		if err != nil {
			t.Fatal(err)
		}
		if got := expr.Knowing(cond.AsBool()).String(); got != tt.want {
			t.Errorf("%s, where %s: %s, want %s", tt.expr, tt.cond, got, tt.want)
		}
	}
}
