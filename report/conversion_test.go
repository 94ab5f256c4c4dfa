package report_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/report"
	"github.com/kvap/kvap/report/doc"
)

var update = flag.Bool("update", false, "rewrite the expected files from current output")

func sample() report.Conversion {
	c := report.New([]report.Policy{
		{Name: "labels", Kind: "ClusterPolicy", File: "a.yaml", Rules: []report.Rule{
			{Name: "team", Type: "validate", Target: report.Native, Objects: []string{"labels", "labels-controllers"}, Line: 7},
			{Name: "owner|x", Type: "validate", Target: report.Webhook, Codes: []diag.Code{201, 203}, Line: 19, Reason: "an apiCall has no native form"},
		}},
		{Name: "gen", Kind: "Policy", Namespace: "shop", File: "b.yaml", Rules: []report.Rule{
			{Name: "copy", Type: "generate", Target: report.Unsupported, Codes: []diag.Code{202}, Line: 3, Reason: "generate\nis not served"},
		}},
		{Name: "empty", Kind: "ClusterPolicy", File: "c.yaml"},
	}, diag.List{
		diag.Warnf(diag.Pos{File: "a.yaml", Line: 20, Col: 7, Path: "spec.rules[1].context[0]"}, 201, "an apiCall has no <native> form"),
		diag.Notef(diag.Pos{File: "d.yaml", Line: 1, Col: 1}, 111, "passed over"),
	})
	c.ExcludedNamespaces = []string{"kube-system"}
	return c
}

func TestGolden(t *testing.T) {
	whole := sample().Document(report.ConversionView{})
	for name, d := range map[string]doc.Document{"summary.txt": sample().Summary(false), "report.txt": whole, "report.md": whole, "report.json": whole} {
		t.Run(name, func(t *testing.T) {
			var got bytes.Buffer
			if err := d.Write(&got, doc.Options{Format: map[string]string{".md": "markdown", ".json": "json"}[filepath.Ext(name)]}); err != nil {
				t.Fatal(err)
			}
			path := filepath.Join("testdata", name)
			if *update {
				if err := os.WriteFile(path, got.Bytes(), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(string(want), got.String()); d != "" {
				t.Errorf("%s (-want +got):\n%s", name, d)
			}
		})
	}
}

// The JSON report is an interface: these keys are there, always, and lists are
// lists even when they are empty.
func TestJSONKeys(t *testing.T) {
	var b bytes.Buffer
	if err := doc.WriteJSON(&b, sample()); err != nil {
		t.Fatal(err)
	}
	var top map[string]any
	if err := json.Unmarshal(b.Bytes(), &top); err != nil {
		t.Fatal(err)
	}
	policies := top["policies"].([]any)
	first := policies[0].(map[string]any)
	has(t, first, "name", "kind", "namespace", "file", "rules")
	has(t, first["rules"].([]any)[0].(map[string]any), "rule", "type", "target", "codes", "objects", "line")
	has(t, top, "policies", "totals", "diagnostics", "excludedNamespaces", "meets")
	has(t, top["totals"].(map[string]any), "policies", "rules", "native", "guessed", "webhook", "unsupported")
	has(t, top["diagnostics"].([]any)[0].(map[string]any), "code", "severity", "file", "line", "column", "path", "message")
	if rules, ok := policies[2].(map[string]any)["rules"].([]any); !ok || len(rules) != 0 {
		t.Errorf("rules of a policy without any: %v, want []", policies[2])
	}
}

func has(t *testing.T, m map[string]any, keys ...string) {
	t.Helper()
	for _, k := range keys {
		if v, ok := m[k]; !ok || v == nil {
			t.Errorf("key %q is missing or null in %v", k, m)
		}
	}
}

func TestEmptyReport(t *testing.T) {
	var b bytes.Buffer
	if err := doc.WriteJSON(&b, report.New(nil, nil)); err != nil {
		t.Fatal(err)
	}
	want := "{\n  \"policies\": [],\n  \"totals\": {\n    \"policies\": 0,\n    \"rules\": 0,\n    \"native\": 0,\n    \"guessed\": 0,\n    \"webhook\": 0,\n    \"unsupported\": 0\n  },\n  \"diagnostics\": [],\n  \"excludedNamespaces\": [],\n  \"meets\": []\n}\n"
	if d := cmp.Diff(want, b.String()); d != "" {
		t.Error(d)
	}
	b.Reset()
	if err := report.New(nil, nil).Summary(false).Write(&b, doc.Options{}); err != nil {
		t.Fatal(err)
	}
	if got := b.String(); got != "0 policies, 0 rules: 0 native, 0 webhook\n" {
		t.Errorf("summary: %q", got)
	}
}

// What became CEL as asked is no failure in any format.
func TestRulesInCEL(t *testing.T) {
	c := report.Conversion{Policies: []report.Policy{{Name: "p", Kind: "ClusterPolicy", Rules: []report.Rule{
		{Name: "becomes", Target: report.CEL}, {Name: "stays", Target: report.Left, Reason: "why"},
	}}}}
	d := c.Document(report.ConversionView{Strict: true})
	cases := d.Suites.Suites[0].Cases
	if cases[0].Failure != nil || cases[0].Skipped != nil || cases[1].Failure == nil {
		t.Errorf("%+v", cases)
	}
}
