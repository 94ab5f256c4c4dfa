package cel

import (
	"slices"
	"testing"
)

func TestQuestions(t *testing.T) {
	for text, want := range map[string][]string{
		"true":                              nil,
		"a == 1 && !b":                      {"a == 1", "b"},
		"a ? b : c > 2":                     {"a", "b", "c > 2"},
		"list.all(x, x.b || x.c)":           {"list.all(x, x.b || x.c)", "list.exists(x, x.b)", "list.exists(x, x.c)"},
		"list.filter(x, x.b).size() > 1":    {"list.filter(x, x.b).size() > 1", "list.exists(x, x.b)"},
		"l.all(x, x.m.exists(y, y == x.k))": {"l.all(x, x.m.exists(y, y == x.k))", "l.exists(x, x.m.exists(y, y == x.k))"},
		"(a ? 1 : 2) == b":                  {"(a ? 1 : 2) == b", "a"},
	} {
		v, err := Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, q := range v.Questions() {
			got = append(got, q.Holds.Text(1000))
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s asks %q, want %q", text, got, want)
		}
	}
}

// Of a loop, one element that meets a question and one that does not may be there at once.
func TestQuestionsOfLoops(t *testing.T) {
	v, err := Parse("list.all(x, x > 1)")
	if err != nil {
		t.Fatal(err)
	}
	got := v.Questions()
	if last := got[len(got)-1]; last.Holds.String() != "list.exists(x, x > 1)" || last.Fails.String() != "list.exists(x, !(x > 1))" {
		t.Errorf("holds %s, fails %s", last.Holds, last.Fails)
	}
}
