package main

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kvap/kvap/internal/exit"
	"github.com/kvap/kvap/vap/apiserver"
)

const teamPolicy = `apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: team}
spec:
  rules:
  - name: label
    match: {any: [{resources: {kinds: [ConfigMap]}}]}
    validate:
      message: a team is needed
      pattern: {metadata: {labels: {team: "?*"}}}
`

func requestLineOf(id, labels string) string {
	return `{"id":"` + id + `","request":{"kind":{"version":"v1","kind":"ConfigMap"},"resource":{"version":"v1","resource":"configmaps"},` +
		`"name":"c","namespace":"n","operation":"CREATE","object":{"metadata":{"name":"c"` + labels + `}}}}` + "\n"
}

// runEval runs eval in a folder that holds the policy, and returns its exit code
// and output.
func runEval(t *testing.T, requests []byte) (int, string, string) {
	t.Helper()
	dir := t.TempDir()
	file := filepath.Join(dir, "policy.yaml")
	if err := os.WriteFile(file, []byte(teamPolicy), 0o600); err != nil {
		t.Fatal(err)
	}
	var out, errs bytes.Buffer
	code := run([]string{"kvap", "eval", file, "--requests", "-", "-o", "jsonl"}, bytes.NewReader(requests), &out, &errs)
	return code, out.String(), errs.String()
}

// TestEvalOrder pins that answers come in the order of the requests, whichever core
// was faster, over several batches, and that a gzipped file is one.
func TestEvalOrder(t *testing.T) {
	var plain bytes.Buffer
	const n = 3*256 + 7 // more than are held at once
	for i := range n {
		labels := ""
		if i%3 == 0 {
			labels = `,"labels":{"team":"a"}`
		}
		plain.WriteString(requestLineOf(fmt.Sprint(i), labels))
	}
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	if _, err := z.Write(plain.Bytes()); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string][]byte{"plain": plain.Bytes(), "gzip": packed.Bytes()} {
		code, out, errs := runEval(t, text)
		if code != exit.CodeClean || errs != "" {
			t.Fatalf("%s: exit code %d: %s", name, code, errs)
		}
		d := json.NewDecoder(strings.NewReader(out))
		for i := range n {
			var a struct {
				ID      string
				Results []struct{ Native string }
			}
			if err := d.Decode(&a); err != nil {
				t.Fatal(err)
			}
			want := string(apiserver.Deny)
			if i%3 == 0 {
				want = string(apiserver.Allow)
			}
			if a.ID != fmt.Sprint(i) || a.Results[0].Native != want {
				t.Fatalf("%s: answer %d is %+v, want %s", name, i, a, want)
			}
		}
		if _, err := d.Token(); !errors.Is(err, io.EOF) {
			t.Errorf("%s: there is more than one answer for a request", name)
		}
	}
}

// TestEvalTruncated pins that what could be read of a cut file is judged.
func TestEvalTruncated(t *testing.T) {
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	_, _ = z.Write([]byte(requestLineOf("a", "")))
	_ = z.Flush()
	code, out, errs := runEval(t, packed.Bytes())
	if code != exit.CodePartly || !strings.Contains(out, `"id":"a"`) || !strings.Contains(errs, "unexpected EOF") {
		t.Errorf("exit code %d\n%s\n%s", code, out, errs)
	}
}
