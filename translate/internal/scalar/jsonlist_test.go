package scalar

import (
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// What JSONListWith matches is what Go's decoder reads as a list of strings with the word.
func TestJSONListWith(t *testing.T) {
	t.Parallel()
	words := []string{"", "a", "ab", "A", `"`, `\`, "/", "a\nb", "\x01", "é", "😀", "null", "a.b", "*"}
	pieces := []string{
		"[", "]", ",", " ", "\n", "\f", "null", `""`, `"a"`, `"ab"`, `"A"`, `"\""`, `"\\"`, `"/"`, `"\/"`, `"a\nb"`, "\"a\nb\"", `"\u0001"`, `"é"`,
		`"\u00E9"`, `"\u00e9"`, `"😀"`, `"\ud83d\uDE00"`, `"\ud83d"`, `"\u0061"`, `"\u0061b"`, `"\q"`, `"\u61"`, `"null"`, `"a.b"`, `"axb"`, `"*"`, "1", "{}", "a", `"`,
	}
	holds := map[string]*regexp.Regexp{}
	for _, word := range words {
		re, ok := JSONListWith(word)
		if !ok {
			t.Fatalf("no expression for %q", word)
		}
		holds[word] = regexp.MustCompile(re)
	}
	random := rand.New(rand.NewPCG(1, 2))
	for range 3000 {
		some := make([]string, random.IntN(4))
		for i := range some {
			some[i] = pieces[random.IntN(len(pieces))]
		}
		text := strings.Join(some, "")
		if random.IntN(4) > 0 { // mostly lists
			text = "[" + strings.Join(some, ",") + "]"
		}
		list, isList, _ := JSONStrings(text)
		for word, re := range holds {
			if got, want := re.MatchString(text), isList && slices.Contains(list, word); got != want {
				t.Errorf("%q in %s is %v, not %v: %s", word, text, want, got, re)
			}
		}
	}
}

func TestJSONListWithNoCharacter(t *testing.T) {
	t.Parallel()
	if _, ok := JSONListWith("a\ufffd"); ok {
		t.Error("a lone surrogate is read as this character, which the expression does not know")
	}
}
