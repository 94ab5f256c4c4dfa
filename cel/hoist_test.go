package cel

import (
	"testing"

	"github.com/kvap/kvap/internal/textdiff"
)

func TestHoistLoops(t *testing.T) {
	tests := []struct{ note, text, want string }{
		{"a loop that does not depend on the element", `a.all(x, x in b.map(y, y.z))`, `a.all(x, x in variables.h)`},
		{"one that does", `a.all(x, x.l.exists(y, y == x.n))`, `a.all(x, x.l.exists(y, y == x.n))`},
		{"one that depends on the outer element only", `a.all(x, x.l.exists(y, x.m.exists(z, z == 1)))`, `a.all(x, x.l.exists(y, x.m.exists(z, z == 1)))`},
		{"no loop around it", `a.exists(x, x == 1)`, `a.exists(x, x == 1)`},
		{"the list of a loop is outside of its body", `a.filter(x, x.ok).all(x, x.good)`, `a.filter(x, x.ok).all(x, x.good)`},
	}
	for _, tt := range tests {
		t.Run(tt.note, func(t *testing.T) {
			v, err := Parse(tt.text)
			if err != nil {
				t.Fatal(err)
			}
			got := v.HoistLoops(func(Value) Value { return Ident("variables").Field("h") }).String()
			if d := textdiff.Values(tt.want, got); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
		})
	}
}

func TestFuse(t *testing.T) {
	tests := []struct{ note, text, want string }{
		{"the same of two lists", `a.all(x, x.ok) && b.all(x, x.ok)`, `(a + b).all(x, x.ok)`},
		{"something else between them", `a.exists(x, x.ok) || c == 1 || b.exists(x, x.ok)`, `(a + b).exists(x, x.ok) || c == 1`},
		{"another property", `a.all(x, x.ok) && b.all(x, x.good)`, `a.all(x, x.ok) && b.all(x, x.good)`},
		{"all under ||", `a.all(x, x.ok) || b.all(x, x.ok)`, `a.all(x, x.ok) || b.all(x, x.ok)`},
		{"a list that cannot be joined", `a.all(x, x.ok) && odd.all(x, x.ok)`, `a.all(x, x.ok) && odd.all(x, x.ok)`},
	}
	for _, tt := range tests {
		t.Run(tt.note, func(t *testing.T) {
			v, err := Parse(tt.text)
			if err != nil {
				t.Fatal(err)
			}
			got := v.AsBool().Fuse(
				func(list Value) bool { return list.String() != "odd" },
				func(lists []Value) Value {
					sum := lists[0]
					for _, l := range lists[1:] {
						sum = sum.Plus(l)
					}
					return sum
				})
			if d := textdiff.Values(tt.want, got.String()); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
		})
	}
}
