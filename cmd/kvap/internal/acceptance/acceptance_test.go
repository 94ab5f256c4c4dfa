package acceptance_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kvap/kvap/cmd/kvap/internal/acceptance"
	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/internal/input"
)

const commented = `# kvap.dev/ignore: KV401: the document
kind: A
spec:
  # kvap.dev/ignore: KV402: the list
  rules:
  - name: a # kvap.dev/ignore: KV403, KV404: the item
    text: |

      long
  - name: b
  other: c
---
kind: B
metadata:
  annotations:
    kvap.dev/ignore: |
      KV405: the object
      KV406: too
`

// TestPlaces: a comment is about its line and what is below it, or about a document.
func TestPlaces(t *testing.T) {
	t.Parallel()
	list, found := acceptance.In([]input.Source{{Name: "a.yaml", Data: []byte(commented)}})
	if len(found) > 0 || len(list) != 6 {
		t.Fatalf("%d are accepted: %v", len(list), found)
	}
	total := strings.Count(commented, "\n")
	for code, lines := range map[diag.Code][2]int{401: {1, 11}, 402: {5, 10}, 403: {6, 9}, 404: {6, 9}, 405: {13, total}, 406: {13, total}} {
		for line := 1; line <= total; line++ {
			want := lines[0] <= line && line <= lines[1]
			if got := acceptance.Reason(list, code, diag.Pos{File: "a.yaml", Line: line}) != ""; got != want {
				t.Errorf("%s in line %d: accepted %v, want %v", code, line, got, want)
			}
		}
		if acceptance.Reason(list, code, diag.Pos{File: "b.yaml", Line: lines[0]}) != "" {
			t.Errorf("%s is accepted in another file", code)
		}
	}
}

// TestEndOfDocument: a comment at the end of a document is not about the next one, and one in
// front of a document is about it.
func TestEndOfDocument(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		"kind: A\n# kvap.dev/ignore: KV401: a\n---\nkind: B\n": false,
		"\n# kvap.dev/ignore: KV401: a\n---\nkind: B\n":        true,
	} {
		list, found := acceptance.In([]input.Source{{Name: "a.yaml", Data: []byte(text)}})
		if got := acceptance.Reason(list, 401, diag.Pos{File: "a.yaml", Line: 4}) != ""; got != want || len(found) > 0 {
			t.Errorf("%q: accepted %v, want %v: %v", text, got, want, found)
		}
	}
}

// TestBadIgnore: without a code or a reason nothing is accepted, and somebody is told.
func TestBadIgnore(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"# kvap.dev/ignore: KV401", "# kvap.dev/ignore: KV401: ", "# kvap.dev/ignore: KV999: a", "# kvap.dev/ignore: because", "metadata: {annotations: {kvap.dev/ignore: KV401}}"} {
		list, found := acceptance.In([]input.Source{{Name: "a.yaml", Data: []byte("a: b\n" + text + "\n")}})
		if len(list) > 0 || len(found) != 1 || found[0].Code != diag.BadIgnore || found[0].Line != 2 {
			t.Errorf("%s: %v, %v", text, list, found)
		}
	}
}

// TestRelative: paths are those of the folder of the file, by whatever name it is read, and what
// is in no file is below none.
func TestRelative(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.WriteFile("c.yaml", []byte("ignore: [{code: KV413, reason: all, paths: ['*']}]"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir("sub", 0o755); err != nil {
		t.Fatal(err)
	}
	t.Chdir("sub")
	c, err := acceptance.Read("../c.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for file, want := range map[string]string{"": "", "-": "", "a.yaml": "all"} {
		if got := acceptance.Reason(c.Accepted(), 413, diag.Pos{File: file}); got != want {
			t.Errorf("%q: %q, want %q", file, got, want)
		}
	}
}

// TestConfiguration: the nearest file above counts, up to the root of a repository.
func TestConfiguration(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	for name, text := range map[string]string{
		"repo/.git/HEAD":      "",
		"repo/.kvap.yaml":     "ignore: [{code: KV413, reason: far, paths: [a/*/c]}]",
		"repo/a/b/c/d.yaml":   "",
		"repo/a/e.yaml":       "",
		"other/.git/HEAD":     "",
		"other/deep/d.yaml":   "",
		".kvap.yaml":          "ignore: [{code: KV401, reason: outside}]",
		"unknown/.kvap.yaml":  "ignored: []",
		"codeless/.kvap.yaml": "ignore: [{reason: a}]",
		"loose/d.yaml":        "",
	} {
		file := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	c, err := acceptance.Find(filepath.Join(root, "repo/a/b/c/d.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for file, want := range map[string]string{"repo/a/b/c/d.yaml": "far", "repo/a/e.yaml": "", "other/a/b/c": ""} {
		if got := acceptance.Reason(c.Accepted(), 413, diag.Pos{File: filepath.Join(root, file), Line: 1}); got != want {
			t.Errorf("%s: %q, want %q", file, got, want)
		}
	}
	if c, err := acceptance.Find(filepath.Join(root, "other/deep")); err != nil || len(c.Accepted()) > 0 {
		t.Errorf("what is outside of a repository counts: %v, %v", c, err)
	}
	if c, err := acceptance.Find(filepath.Join(root, "loose/d.yaml")); err != nil || len(c.Accepted()) > 0 {
		t.Errorf("outside of any repository a folder above counts: %v, %v", c, err)
	}
	if c, err := acceptance.Find(root); err != nil || len(c.Accepted()) != 1 {
		t.Errorf("outside of any repository the folder itself does not count: %v, %v", c, err)
	}
	for _, bad := range []string{"unknown", "codeless"} {
		if _, err := acceptance.Find(filepath.Join(root, bad)); err == nil {
			t.Errorf("%s is taken", bad)
		}
	}
}
