package textdiff

import "testing"

func TestValues(t *testing.T) {
	type pair struct {
		Name string
		kept int
	}
	for _, c := range []struct {
		name          string
		before, after any
		want          string
	}{
		{"texts", "a\nb", "a\nc", "  a\n- b\n+ c\n"},
		{"lists", []string{"a"}, []string{"b"}, "  [\n-   \"a\"\n+   \"b\"\n  ]\n"},
		{"what JSON has", pair{"a", 1}, pair{"b", 1}, "  {\n-   \"Name\": \"a\"\n+   \"Name\": \"b\"\n  }\n"},
		{"what JSON leaves out", pair{"a", 1}, pair{"a", 2}, "- textdiff.pair{Name:\"a\", kept:1}\n+ textdiff.pair{Name:\"a\", kept:2}\n"},
		{"nothing and a list of nothing", []string(nil), []string{}, "- null\n+ []\n"},
		{"types", 1, int64(1), "- 1\n+ 1\n"},
		{"what JSON cannot say", map[any]int{1: 1}, map[any]int{1: 2}, "- map[interface {}]int{1:1}\n+ map[interface {}]int{1:2}\n"},
		{"the same", pair{"a", 1}, pair{"a", 1}, ""},
	} {
		if got := Values(c.before, c.after); got != c.want {
			t.Errorf("%s: got\n%swant\n%s", c.name, got, c.want)
		}
	}
}
