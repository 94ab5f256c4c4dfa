package main

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kvap/kvap/cel"
)

const teamPolicy = `apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata:
  name: require-team
  annotations: {pod-policies.kyverno.io/autogen-controllers: none}
spec:
  validationFailureAction: Audit
  rules:
  - name: team
    match: {any: [{resources: {kinds: [Pod]}}]}
    validate:
      message: a team is needed
      pattern: {metadata: {labels: {team: "?*"}}}
`

func pod(labels string) string {
	return `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p","namespace":"n"` + labels + `},"spec":{"containers":[{"name":"c","image":"i"}]}}`
}

func caseLine(op, object, old, verdicts string) string {
	return `{"id":"` + op + `","request":{"uid":"1","operation":"` + op + `","name":"p","namespace":"n","kind":{"group":"","version":"v1","kind":"Pod"},` +
		`"resource":{"group":"","version":"v1","resource":"pods"},"userInfo":{"username":"alice"},"object":` + object + `,"oldObject":` + old + `},` + verdicts + `}`
}

// smallCorpus writes a corpus of one policy with the cases.
func smallCorpus(t *testing.T, cases ...string) string {
	t.Helper()
	dir := t.TempDir()
	folder := filepath.Join(dir, "policies", "other", "require-team")
	if err := os.MkdirAll(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	write := func(file, text string) {
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write(filepath.Join(dir, "index.json"), `{"policies":[{"dir":"other/require-team","rules":[{"rule":"team","class":"direct"}]}]}`)
	write(filepath.Join(folder, "policy.yaml"), teamPolicy)
	var zipped bytes.Buffer
	z := gzip.NewWriter(&zipped)
	if _, err := z.Write([]byte(strings.Join(cases, "\n") + "\n")); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	write(filepath.Join(folder, "cases.jsonl.gz"), zipped.String())
	return dir
}

func TestRun(t *testing.T) {
	bad, good := pod(""), pod(`,"labels":{"team":"a"}`)
	right := []string{
		caseLine("CREATE", good, "null", `"verdicts":{"team":"pass"}`),
		caseLine("CREATE", bad, "null", `"verdicts":{"team":"fail"}`),
		caseLine("UPDATE", bad, bad, `"verdicts":{"team":"fail"},"enforceVerdicts":{"team":"skip"}`),
		caseLine("DELETE", "null", bad, `"verdicts":{}`),
	}
	for _, tt := range []struct {
		name  string
		cases []string
		last  string
		ok    bool
	}{
		{"all agree, as published and enforcing, twice", right, "conformance: 16 passed, 0 failed", true},
		{"a status is another", append([]string{caseLine("CREATE", good, "null", `"verdicts":{"team":"fail"}`)}, right...), "conformance: 16 passed, 4 failed", false},
		{"an old violation is no excuse for Audit", []string{caseLine("UPDATE", bad, bad, `"verdicts":{"team":"skip"}`)}, "conformance: 2 passed, 2 failed", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var out bytes.Buffer
			ok, err := run(&out, config{corpus: smallCorpus(t, tt.cases...), release: cel.Latest.String(), interp: true, verbose: true})
			if err != nil {
				t.Fatal(err)
			}
			lines := strings.Split(strings.TrimSpace(out.String()), "\n")
			if ok != tt.ok || lines[len(lines)-1] != tt.last {
				t.Errorf("%v\n%s", ok, out.String())
			}
		})
	}
}

const labelPolicy = `apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata:
  name: add-team
  annotations: {pod-policies.kyverno.io/autogen-controllers: none}
spec:
  rules:
  - name: label
    match: {any: [{resources: {kinds: [Pod]}}]}
    mutate: {patchStrategicMerge: {metadata: {labels: {+(team): x}}}}
`

func TestRunMutating(t *testing.T) {
	bare, labelled := pod(""), pod(`,"labels":{"team":"x"}`)
	for _, tt := range []struct {
		name, line, last string
	}{
		{"as recorded", caseLine("CREATE", bare, "null", `"statuses":{"label":"pass"},"object":`+labelled), "conformance: 4 passed, 0 failed"},
		{"another status", caseLine("CREATE", bare, "null", `"statuses":{"label":"skip"},"object":`+labelled), "conformance: 3 passed, 1 failed"},
		{"another object", caseLine("CREATE", bare, "null", `"statuses":{"label":"pass"},"object":`+bare), "conformance: 3 passed, 1 failed"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			corpus := smallCorpus(t, caseLine("CREATE", bare, "null", `"verdicts":{"team":"fail"}`))
			folder := filepath.Join(corpus, "mutate", "add-team")
			writeZipped(t, filepath.Join(folder, "cases.jsonl.gz"), tt.line+"\n")
			for file, text := range map[string]string{
				filepath.Join(corpus, "index-others.json"): `[{"dir":"mutate/add-team","files":["p.yaml"],"cases":1}]`,
				filepath.Join(folder, "p.yaml"):            labelPolicy,
			} {
				if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			var out bytes.Buffer
			if _, err := run(&out, config{corpus: corpus, release: cel.Latest.String(), verbose: true}); err != nil {
				t.Fatal(err)
			}
			lines := strings.Split(strings.TrimSpace(out.String()), "\n")
			if lines[len(lines)-1] != tt.last {
				t.Errorf("want %s\n%s", tt.last, out.String())
			}
		})
	}
}

func writeZipped(t *testing.T, file, text string) {
	t.Helper()
	var zipped bytes.Buffer
	z := gzip.NewWriter(&zipped)
	if _, err := z.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, zipped.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestRunWithoutCorpus(t *testing.T) {
	var out bytes.Buffer
	ok, err := run(&out, config{corpus: filepath.Join(t.TempDir(), "none"), release: cel.Latest.String()})
	if err != nil || !ok || !strings.Contains(out.String(), "no corpus at ") || !strings.HasSuffix(out.String(), "conformance: 0 passed, 0 failed\n") {
		t.Errorf("%v, %v: %s", ok, err, out.String())
	}
}

func TestRunWithoutSuchPolicy(t *testing.T) {
	if _, err := run(&bytes.Buffer{}, config{corpus: smallCorpus(t, ""), only: "nothing", release: cel.Latest.String()}); err == nil {
		t.Error("no error")
	}
}

func TestEnforcing(t *testing.T) {
	source := `{"spec":{"validationFailureAction":"Audit","validationFailureActionOverrides":[],"rules":[{"validate":{"failureAction":"Audit","failureActionOverrides":[],"message":"m"}},{"mutate":{}}]}}`
	got, err := enforcing([]byte(source))
	if err != nil {
		t.Fatal(err)
	}
	var p map[string]any
	if err := json.Unmarshal(got, &p); err != nil {
		t.Fatal(err)
	}
	const want = `{"spec":{"rules":[{"validate":{"message":"m"}},{"mutate":{}}],"validationFailureAction":"Enforce"}}`
	if string(got) != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}
