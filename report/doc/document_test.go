package doc

import (
	"encoding/json"
	"encoding/xml"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func written(t *testing.T, d Document, format string) string {
	t.Helper()
	var b strings.Builder
	if err := d.Write(&b, Options{Format: format}); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// Sections are set apart, and so are items with particulars; what is empty, or for others, is left out.
func TestSections(t *testing.T) {
	d := Document{
		Title: "All", Totals: Section{Text: "1 policy"},
		Sections: []Section{
			{Table: [][]string{{"Policy", "result"}, {"a", "native"}}},
			{Title: "Empty", Table: [][]string{{"policy"}}},
			{Title: "Differences", Items: []Item{
				{Of: []string{"a", "b"}, Text: "they differ", Items: []Item{{Of: []string{"old"}, Text: "one\ntwo"}, {Of: []string{"object"}, Code: "kind: Pod\n"}}},
				{Text: "no more"},
			}},
			{In: Terminal, Text: "next"},
		},
	}
	for format, want := range map[string]string{
		"text": `POLICY  RESULT
a       native

a / b: they differ
  old: one
    two
  object:
    kind: Pod

no more

next

1 policy
`,
		"markdown": "# All\n\n1 policy.\n\n| Policy | result |\n|---|---|\n| a | native |\n\n## Differences\n\n- `a` / `b`: they differ\n" +
			"  - `old`: one two\n  - `object`:\n\n        kind: Pod\n\n- no more\n",
	} {
		if d := cmp.Diff(want, written(t, d, format)); d != "" {
			t.Errorf("%s (-want +got):\n%s", format, d)
		}
	}
}

// In JSON no list is null, however deep; what is JSON already stays, and the value is not changed.
func TestListsAreNeverNull(t *testing.T) {
	type part struct {
		Names []string        `json:"names"`
		Line  json.RawMessage `json:"line,omitempty"`
		own   []string
	}
	type whole struct {
		Parts []part `json:"parts"`
		One   *part  `json:"one"`
		None  *part  `json:"none"`
	}
	value := whole{Parts: []part{{Line: json.RawMessage(`{"a":null}`), own: []string{"x"}}}, One: &part{}}
	want := `{"parts":[{"names":[],"line":{"a":null}}],"one":{"names":[]},"none":null}`
	for format, text := range map[string]string{"json": want, "yaml": "none: null\none:\n  names: []\nparts:\n- line:\n    a: null\n  names: []\n"} {
		got := written(t, Document{Data: value}, format)
		if format == "json" {
			got = strings.Join(strings.Fields(got), "")
		}
		if d := cmp.Diff(text, got); d != "" {
			t.Errorf("%s (-want +got):\n%s", format, d)
		}
	}
	if value.Parts[0].Names != nil || value.One.Names != nil {
		t.Error("the value was changed")
	}
}

// What JUnit is written of may have any characters; what is written can be read.
func TestJUnitOfAnyText(t *testing.T) {
	odd := "a\x00\x1b[31m<&\">\ufffe"
	d := Document{Suites: Suites{Name: odd, Suites: []JUnitSuite{{Name: odd, Cases: []JUnitCase{{Name: odd, Failure: &JUnitMessage{Message: odd, Text: odd}}, {Name: "b"}}}}}}
	text := written(t, d, "junit")
	var read Suites
	if err := xml.Unmarshal([]byte(text), &read); err != nil {
		t.Fatalf("%v:\n%s", err, text)
	}
	if got := read.Suites[0].Cases[0].Failure; got.Message != "a\ufffd\ufffd[31m<&\">\ufffd" || got.Text != got.Message {
		t.Errorf("%q", got)
	}
	if read.Tests != 2 || read.Failures != 1 {
		t.Errorf("%d tests, %d failures", read.Tests, read.Failures)
	}
}
