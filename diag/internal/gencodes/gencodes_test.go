package gencodes

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParse(t *testing.T) {
	codes, err := Parse([]byte(`package diag

// 2xx
const (
	// B occurs when a | b. More.
	//
	// Do something.
	//
	// Example:
	//
	//	a:
	//	  - b
	B Code = 201
)

const (
	// A occurs when nothing is there.
	//
	// Example:
	//  $ kvap convert nothing
	A Code = 101
)
`))
	want := []Code{
		{Number: 101, Name: "A", Text: "Occurs when nothing is there.", Example: "$ kvap convert nothing"},
		{Number: 201, Name: "B", Text: "Occurs when a | b. More.\n\nDo something.", Example: "a:\n  - b"},
	}
	if d := cmp.Diff(want, codes); d != "" || err != nil {
		t.Fatalf("%v (-want +got):\n%s", err, d)
	}
	doc := string(Markdown(codes))
	for _, part := range []string{"| [KV201](#kv201) | B | when a \\| b |", "## 1xx: reading", "```sh\n$ kvap", "```yaml\na:\n  - b\n```"} {
		if !strings.Contains(doc, part) {
			t.Errorf("no %q in:\n%s", part, doc)
		}
	}
}

func TestParseErrors(t *testing.T) {
	for name, body := range map[string]string{
		"same number": "// A occurs.\nA Code = 1\n// B occurs.\nB Code = 1",
		"no comment":  "A Code = 1",
		"other name":  "// B occurs.\nA Code = 1",
		"no number":   "// A occurs.\nA Code = 1\n// B occurs.\nB",
		"no literal":  "// A occurs.\nA Code = 1 + 1",
	} {
		if _, err := Parse([]byte("package diag\nconst (\n" + body + "\n)\n")); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
