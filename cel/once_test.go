package cel

import "testing"

func TestOnce(t *testing.T) {
	for text, want := range map[string]string{
		`l.all(c, has(r.Get(c).a) && r.Get(c).b == 1)`:                        `l.all(c, cel.bind(got, r.Get(c), has(got.a) && got.b == 1))`,
		`l.all(c, c.x && has(r.Get(c).a) && r.Get(c).b == 1)`:                 `l.all(c, c.x && cel.bind(got, r.Get(c), has(got.a) && got.b == 1))`,
		`l.all(c, c.x || !(has(r.Get(c).a) && r.Get(c).b == 1))`:              `l.all(c, c.x || !cel.bind(got, r.Get(c), has(got.a) && got.b == 1))`,
		`l.all(c, (c.x || r.Get(c).a) && (c.y || r.Get(c).b))`:                `l.all(c, (c.x || r.Get(c).a) && (c.y || r.Get(c).b))`,
		`l.all(c, c.x ? r.Get(c).a : r.Get(c).b)`:                             `l.all(c, cel.bind(got, r.Get(c), c.x ? got.a : got.b))`,
		`l.all(c, c.x ? r.Get(c).a && r.Get(c).b : c.y)`:                      `l.all(c, c.x ? cel.bind(got, r.Get(c), got.a && got.b) : c.y)`,
		`l.all(c, r.Get(c).a)`:                                                `l.all(c, r.Get(c).a)`,
		`r.Get(o).a && r.Get(o).b`:                                            `r.Get(o).a && r.Get(o).b`,
		`l.all(c, c.m.all(d, r.Get(c).a) && c.m.all(d, r.Get(c).b))`:          `l.all(c, c.m.all(d, r.Get(c).a) && c.m.all(d, r.Get(c).b))`,
		`l.all(c, c.m.all(d, r.Get(d).a && r.Get(d).b) && r.Get(c).a == c.y)`: `l.all(c, c.m.all(d, cel.bind(got, r.Get(d), got.a && got.b)) && r.Get(c).a == c.y)`,
	} {
		got := parse(t, text).Once(func(v Value) (string, bool) {
			name, _ := v.Called()
			return "got", name == "Get"
		})
		if got.String() != want {
			t.Errorf("%s: got %s, want %s", text, got, want)
		}
	}
}
