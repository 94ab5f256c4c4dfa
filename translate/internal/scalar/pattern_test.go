package scalar

import "testing"

// The pattern decides of its own text too.
func TestOwnText(t *testing.T) {
	for p, want := range map[string]bool{"!*:latest": false, "<5": false, "a|b": false, "1-5": false, "a*": true, "?*": true} {
		if got := Satisfies(p, p); got != want {
			t.Errorf("%q satisfies itself: %v, want %v", p, got, want)
		}
	}
}
