package manifest

import (
	"bytes"
	"testing"
)

// FuzzRead holds that any file is read without a crash, that every place is in it,
// and that a document in front changes nothing but the lines.
func FuzzRead(f *testing.F) {
	for _, seed := range []string{
		"kind: A\n---\nkind: B\n", "[{kind: A}]", "a: &a [*a]\n", "--- # c\n%YAML 1.1\n", "kind: List\nitems: [1]\n", "a: [\n", "\ufeff\r\n---\r\n", "a: yes\na: no\n",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		objects, found := Read("f", data)
		lines := bytes.Count(data, []byte("\n")) + 1
		for _, o := range objects {
			if o.Pos.Line < 1 || o.Pos.Line > lines {
				t.Errorf("line %d of %d", o.Pos.Line, lines)
			}
			_ = o.Title()
		}
		for _, d := range found {
			if d.Line > lines {
				t.Errorf("line %d of %d: %v", d.Line, lines, d)
			}
		}
		if bytes.HasPrefix(data, []byte("\ufeff")) {
			return
		}
		again, _ := Read("f", append([]byte("kind: First\n---\n"), data...))
		if bytes.HasPrefix(data, []byte("---")) || bytes.HasPrefix(data, []byte("%")) {
			return // they mean something else further down
		}
		if len(found) == 0 && len(again) != len(objects)+1 {
			t.Errorf("%d objects alone, %d behind another", len(objects), len(again)-1)
		}
	})
}
