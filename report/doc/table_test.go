package doc

import (
	"bytes"
	"strings"
	"testing"

	"github.com/kvap/kvap/diag"
)

// TestColouredTable pins that colours change nothing about what a table says, and that
// nobody gets them who did not ask.
func TestColouredTable(t *testing.T) {
	rows := [][]string{{"RULE", "NATIVE", "MESSAGE"}, {"ä", "deny", ""}, {"long", "allow", "pass, or fail"}, {"deny", "", ""}}
	var plain, coloured bytes.Buffer
	d := Document{Totals: Section{Text: "2 rows"}, Sections: []Section{{Table: rows}}}
	if err := d.Write(&plain, Options{}); err != nil {
		t.Fatal(err)
	}
	if want := "RULE  NATIVE  MESSAGE\nä     deny    \nlong  allow   pass, or fail\ndeny          \n2 rows\n"; plain.String() != want {
		t.Errorf("got\n%q, want\n%q", plain.String(), want)
	}
	if err := d.Write(&coloured, Options{Text: diag.Text{Colour: true}}); err != nil {
		t.Fatal(err)
	}
	text := coloured.String()
	if !strings.Contains(text, "\x1b[31mdeny\x1b[0m") || !strings.Contains(text, "\x1b[32mallow\x1b[0m") {
		t.Errorf("%q", text)
	}
	if strings.Count(text, "deny\x1b") != 1 {
		t.Errorf("a rule called deny is painted as a verdict: %q", text)
	}
	for _, code := range []string{"\x1b[31m", "\x1b[32m", "\x1b[0m"} {
		text = strings.ReplaceAll(text, code, "")
	}
	if text != plain.String() {
		t.Errorf("without colours: %q", text)
	}
}
