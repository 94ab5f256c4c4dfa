package cel

import "testing"

// A search stands for the comparison of two counts, where what the second counts is among what
// the first counts.
func TestCounted(t *testing.T) {
	for text, want := range map[string]string{
		`size(a.filter(x, x.p)) != size(a.filter(x, x.p && x.q))`:                                    `a.exists(x, x.p && !x.q)`,
		`size(a.filter(x, x.p && x.q)) != size(a.filter(x, x.p))`:                                    `a.exists(x, x.p && !x.q)`,
		`size(a.filter(x, x.p)) == size(a.filter(x, x.q && x.p && x.r))`:                             `!a.exists(x, x.p && !(x.q && x.r))`,
		`size(a) != size(a.filter(x, x.p))`:                                                          `a.exists(x, !x.p)`,
		`a.map(x, size(x.l)).sum() != a.map(x, size(x.l.filter(y, y.p))).sum()`:                      `a.exists(x, x.l.exists(y, !y.p))`,
		`size(a.filter(x, x.p)) + size(b) != size(a.filter(x, x.p && x.q)) + size(b.filter(x, x.p))`: `a.exists(x, x.p && !x.q) || b.exists(x, !x.p)`,
	} {
		if got := parse(t, text).AsBool().Counted().String(); got != want {
			t.Errorf("%s\n got %s\nwant %s", text, got, want)
		}
	}
	for _, text := range []string{
		`size(a.filter(x, x.p)) != size(a.filter(x, x.q))`,
		`size(a.filter(x, x.p && x.r)) != size(a.filter(x, x.p && x.q))`,
		`size(a.filter(x, x.p)) != size(b.filter(x, x.p && x.q))`,
		`size(a.filter(x, x.p)) != size(a.filter(y, y.p && y.q))`,
		`size(a.filter(x, x.p)) < size(a.filter(x, x.p && x.q))`,
		`size(a.filter(x, x.p)) + 1 != size(a.filter(x, x.p && x.q)) + 2`,
	} {
		if got := parse(t, text).AsBool().Counted().String(); got != text {
			t.Errorf("%s became %s", text, got)
		}
	}
}
