package manifest

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kvap/kvap/diag"
)

// told is a result in one text: the place and title of each object, then the
// diagnostics.
func told(objects []Object, found diag.List) string {
	var lines []string
	for _, o := range objects {
		lines = append(lines, o.Pos.String()+" "+o.Title())
	}
	for _, d := range found {
		lines = append(lines, d.Pos.String()+" "+d.Code.String())
	}
	return strings.Join(lines, "\n")
}

func TestRead(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"empty":     {"", ""},
		"comments":  {"# nothing\n---\n# more\n", ""},
		"one":       {"kind: Pod\nmetadata: {name: a, namespace: ns}\n", "f:1:1 Pod/ns/a"},
		"several":   {"# first\nkind: A\n---\n\nkind: B\n--- # c\nkind: C\n...\n", "f:2:1 A\nf:5:1 B\nf:7:1 C"},
		"generated": {"kind: Pod\nmetadata: {generateName: a-}\n", "f:1:1 Pod/a-"},
		"crlf":      {"kind: A\r\n---\r\nkind: B\r\n", "f:1:1 A\nf:3:1 B"},
		"bom":       {"\ufeffkind: A\n", "f:1:1 A"},
		"list":      {"kind: List\nitems:\n- kind: A\n- kind: B\n", "f:1:1 A\nf:1:1 B"},
		"json":      {`[{"kind": "A"}, {"kind": "B"}]`, "f:1:1 A\nf:1:1 B"},
		"stream":    {"{\"kind\": \"A\"}\n\n{\n\"kind\": \"B\"}[{\"kind\": \"C\"}]\n---\n{\"kind\": \"D\"} # one\n", "f:1:1 A\nf:3:1 B\nf:4:1 C\nf:6:1 D"},
		"ends":      {"kind: A\n...\nkind: B\n... # c\nkind: C\n", "f:1:1 A\nf:3:1 B\nf:5:1 C"},
		"more":      {"{kind: A}\n\nkind: [\n---\nkind: B\n", "f:5:1 B\nf:1:1 KV102"},
		"more JSON": {"{\"kind\": \"A\"}\n{\"kind\": \"B\",\n", "f:1:1 KV102"},
		"of a kind": {"kind: AList\napiVersion: v1\nitems:\n- metadata: {name: a}\n- kind: B\n- hello\n", "f:1:1 A/a\nf:1:1 B\nf:1:1 KV114"},
		"scalar":    {"kind: A\n---\nhello\n", "f:1:1 A\nf:3:1 KV114"},
		"broken":    {"kind: A\n---\nkind: B\na: [\n---\nkind: C\n", "f:1:1 A\nf:6:1 C\nf:4:1 KV102"},
		"latin1":    {"kind: \xe9\n", "f KV101"},
	} {
		t.Run(name, func(t *testing.T) {
			if d := cmp.Diff(c.want, told(Read("f", []byte(c.text)))); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
		})
	}
}

// TestTypes pins that values have the types that kubectl would send.
func TestTypes(t *testing.T) {
	objects, found := Read("f", []byte("a: yes\nb: 1\nc: 1.5\nd: '1'\ne: null\n"))
	if len(found) > 0 || len(objects) != 1 {
		t.Fatal(objects, found)
	}
	want := map[string]any{"a": true, "b": int64(1), "c": 1.5, "d": "1", "e": nil}
	if d := cmp.Diff(want, objects[0].Value); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}
