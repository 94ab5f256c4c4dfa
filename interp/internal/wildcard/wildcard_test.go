package wildcard

import (
	"math/rand/v2"
	"strings"
	"testing"
)

// plainly matches by trying everything.
func plainly(pattern, text []rune) bool {
	switch {
	case len(pattern) == 0:
		return len(text) == 0
	case pattern[0] == '*':
		return plainly(pattern[1:], text) || len(text) > 0 && plainly(pattern, text[1:])
	case len(text) == 0:
		return false
	}
	return (pattern[0] == '?' || pattern[0] == text[0]) && plainly(pattern[1:], text[1:])
}

func TestMatch(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	made := func(alphabet string, n int) string {
		letters := []rune(alphabet)
		var b strings.Builder
		for range random.IntN(n) {
			b.WriteRune(letters[random.IntN(len(letters))])
		}
		return b.String()
	}
	matched := 0
	for range 50_000 {
		pattern, text := made("ab?*ä", 7), made("abä", 9)
		want := plainly([]rune(pattern), []rune(text))
		if got := Match(pattern, text); got != want {
			t.Fatalf("%q %q: want %t", pattern, text, want)
		}
		if want {
			matched++
		}
	}
	if matched < 1000 {
		t.Errorf("only %d match", matched)
	}
}

// TestMatchOfLongTexts would take hours if every place were tried for every star.
func TestMatchOfLongTexts(t *testing.T) {
	long := strings.Repeat("a", 1<<20)
	if Match("*"+long+"b*", long+long) || !Match("*"+long+"*", long+long) || Match(strings.Repeat("*a", 1<<19)+"b", long) {
		t.Error("wrong")
	}
}
