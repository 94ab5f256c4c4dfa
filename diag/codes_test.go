package diag_test

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/diag/internal/gencodes"
)

// What is generated from the comments must be up to date.
func TestGenerated(t *testing.T) {
	codes := parseCodes(t)
	goText, err := gencodes.Go(codes)
	if err != nil {
		t.Fatal(err)
	}
	for file, want := range map[string][]byte{"explain.go": goText, "../docs/codes.md": gencodes.Markdown(codes)} {
		got, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(string(want), string(got)); d != "" {
			t.Errorf("%s is stale, run go generate ./diag (-codes.go +file):\n%s", file, d)
		}
	}
}

func parseCodes(t *testing.T) []gencodes.Code {
	t.Helper()
	src, err := os.ReadFile("codes.go")
	if err != nil {
		t.Fatal(err)
	}
	codes, err := gencodes.Parse(src)
	if err != nil {
		t.Fatal(err)
	}
	return codes
}

func TestCodesAreDescribed(t *testing.T) {
	for _, c := range parseCodes(t) {
		if c.Number < 100 || c.Number > 699 || !strings.HasPrefix(c.Text, "Occurs ") {
			t.Errorf("%s = %d: the comment says %q; it must say when the code occurs", c.Name, c.Number, c.Text)
		}
		if c.Number < 200 && c.Example == "" {
			t.Errorf("%s has no example", c.Name)
		}
	}
}

// Who is told that a rule has no native form is told the way out.
func TestEveryRefusalHasAWayOut(t *testing.T) {
	for _, c := range parseCodes(t) {
		if c.Number/100 == 2 && !strings.Contains(c.Text, "\n\n") {
			t.Errorf("%s says what occurs, and not what to do", c.Name)
		}
	}
}

func TestTitle(t *testing.T) {
	for _, c := range diag.Codes() {
		if name, when := diag.Title(c); name == "" || when == "" || strings.ContainsAny(when, "\n") || len(when) > 140 {
			t.Errorf("%s: %q %q", c, name, when)
		}
	}
	if name, when := diag.Title(diag.Missing); name != "Missing" || when != "a required key is absent, null or empty" {
		t.Errorf("%q %q", name, when)
	}
}

func TestExplain(t *testing.T) {
	got, ok := diag.Explain(diag.DuplicateKey)
	const want = `KV105 DuplicateKey

Occurs when a mapping has the same key twice. The last counts, as for
kubectl and for Kyverno, and what the other says is lost. ` + "`convert --strict`" + ` ends
with 1: nobody can be sure which of the two was meant.

Remove one of the two. Where it is the apiVersion of a whole document, a line --- is
missing in front of it, and what stands before that is lost.

Example:

    validate:
      pattern:
        spec:
          hostPID: false
          hostPID: true
`
	if d := cmp.Diff(want, got); d != "" || !ok {
		t.Errorf("(-want +got):\n%s", d)
	}
	for _, c := range diag.Codes() {
		if text, ok := diag.Explain(c); !ok || !strings.HasPrefix(text, c.String()+" ") {
			t.Errorf("%s: %q", c, text)
		}
	}
	if _, ok := diag.Explain(999); ok {
		t.Error("999 is explained")
	}
}

func TestParseCode(t *testing.T) {
	for _, text := range []string{"KV106", "kv106", "106", " KV106\n", "UnknownKey", "unknownkey"} {
		if c, ok := diag.ParseCode(text); !ok || c != diag.UnknownKey {
			t.Errorf("%q is %v", text, c)
		}
	}
	for _, text := range []string{"", "KV", "KV999", "KV1060", "KV-106", "UnknownKe"} {
		if c, ok := diag.ParseCode(text); ok {
			t.Errorf("%q is %v", text, c)
		}
	}
}

func TestExample(t *testing.T) {
	got, ok := diag.Example(diag.DuplicateKey)
	const want = `apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata:
  name: example
spec:
  rules:
    - name: example
      match:
        any:
          - resources:
              kinds: [Pod]
      validate:
        pattern:
          spec:
            hostPID: false
            hostPID: true
`
	if d := cmp.Diff(want, got); d != "" || !ok {
		t.Errorf("(-want +got):\n%s", d)
	}
	if _, ok := diag.Example(diag.Unreadable); ok {
		t.Error("a command is no file")
	}
}
