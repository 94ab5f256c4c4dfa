package textdiff

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

func TestDiff(t *testing.T) {
	before := "a\nb\nc\nd\ne\nf\ng\nh\ni\nj\n"
	after := "a\nb\nc\nd\nE\nf\ng\nh\ni\nj\nk\n"
	want := `  …
  b
  c
  d
- e
+ E
  f
  g
  h
  i
  j
+ k
`
	if d := Values(want, Diff(before, after)); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	if got := Diff(before, before); got != "" {
		t.Errorf("the same text: %q", got)
	}
}

// TestBothTextsAreThere: the changes have all of both texts, whatever they
// are.
func TestBothTextsAreThere(t *testing.T) {
	chance := rand.New(rand.NewPCG(1, 2))
	text := func() (out []string) {
		for range chance.IntN(5) { // so few that none is far from a change
			out = append(out, string(rune('a'+chance.IntN(4))))
		}
		return out
	}
	for range 2000 {
		a, b := text(), text()
		var before, after []string
		text := Diff(strings.Join(a, "\n"), strings.Join(b, "\n"))
		if text == "" && slices.Equal(a, b) {
			continue
		}
		for line := range strings.Lines(text) {
			if line[0] != '+' {
				before = append(before, strings.TrimSpace(line[2:]))
			}
			if line[0] != '-' {
				after = append(after, strings.TrimSpace(line[2:]))
			}
		}
		if strings.Join(a, ",") != strings.Join(before, ",") || strings.Join(b, ",") != strings.Join(after, ",") {
			t.Fatalf("%v and %v: %v, %v", a, b, before, after)
		}
	}
}
