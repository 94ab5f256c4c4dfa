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

	"github.com/kvap/kvap/compile"
	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/internal/exit"
	"github.com/kvap/kvap/internal/judge"
	"github.com/kvap/kvap/interp"
	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/translate"
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
	const n = 3*batchSize + 7
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
			var a jsonAnswer
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

// TestEvalVerdict pins what weighs most among what a run has seen.
func TestEvalVerdict(t *testing.T) {
	rule := &compile.Form{Name: "r", Source: &policy.Rule{}, Rule: &compile.Rule{Policy: &policy.Policy{Name: "p"}, Target: translate.Native}}
	agree := judged{id: "1", opinions: []judge.Opinion{{Rule: rule, Compared: true, Native: apiserver.Deny, Status: interp.Fail, Kyverno: interp.Fail}}}
	disagree := judged{id: "2", opinions: []judge.Opinion{{Rule: rule, Compared: true, Native: apiserver.Allow, Status: interp.Fail, Kyverno: interp.Fail, Message: "bad"}}}
	unread := judged{unread: true, found: diag.List{diag.Errorf(diag.Pos{}, diag.BadRequest, "unreadable")}}
	for name, c := range map[string]struct {
		judged []judged
		want   int
	}{
		"a violation is no finding": {[]judged{agree}, exit.CodeClean},
		"a disagreement is":         {[]judged{agree, disagree}, exit.CodeFindings},
		"some left out":             {[]judged{agree, disagree, unread}, exit.CodePartly},
		"all left out":              {[]judged{unread}, exit.CodeUsage},
		"nothing":                   {nil, exit.CodeUsage},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			e := &evaluation{
				judges: &judge.Judges{Rules: []*compile.Form{rule}}, out: evalFlags{}.newOutput(&out),
				told: map[string]bool{}, missing: map[diag.Pos]judge.Lookup{},
			}
			for _, j := range c.judged {
				if err := e.note(j); err != nil {
					t.Fatal(err)
				}
			}
			if err := e.out.finish(e.totals); err != nil {
				t.Fatal(err)
			}
			code := exit.CodeClean
			var done *exit.Error
			if errors.As(e.verdict(), &done) {
				code = done.Code
			}
			if code != c.want {
				t.Errorf("exit code %d, want %d", code, c.want)
			}
			if c.want == exit.CodeFindings && !strings.Contains(out.String(), "DISAGREE: native: ; interpreter: bad") {
				t.Errorf("the table hides the disagreement:\n%s", out.String())
			}
		})
	}
}
