package interp

import (
	"context"
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// TestValidatingCorpus compares the gravest status over the forms of each
// ValidatingPolicy with Kyverno's.
func TestValidatingCorpus(t *testing.T) {
	needCorpus(t)
	if policies, total := eachFolder(t, "validatingpolicy", compareValidating); policies < 60 || total < 4000 {
		t.Errorf("%d policies, %d cases", policies, total)
	}
}

// eachFolder compares the cases of every folder of a part of the corpus.
func eachFolder(t *testing.T, part string, compare func(t *testing.T, dir string) (cases int)) (policies, total int) {
	t.Helper()
	root := filepath.Join(corpusDir, part)
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.Name() != "cases.jsonl.gz" {
			return err
		}
		policies++
		name, _ := filepath.Rel(root, filepath.Dir(path))
		t.Run(name, func(t *testing.T) { total += compare(t, filepath.Dir(path)) })
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	return policies, total
}

func compareValidating(t *testing.T, dir string) (cases int) {
	data, err := os.ReadFile(dir + "/policy.yaml")
	if err != nil {
		t.Fatal(err)
	}
	in := New(readPolicies(t, dir, data), nil, corpusWorld(t, dir), Limits{})
	for _, line := range lines(t, dir+"/cases.jsonl.gz") {
		var c corpusCase
		var recorded struct {
			Status map[string]Status `json:"status"`
		}
		if err := json.Unmarshal(line, &c); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(line, &recorded); err != nil {
			t.Fatal(err)
		}
		got := map[string]RuleResult{}
		for _, r := range in.Judge(context.Background(), c.request(t, "")) {
			if old, ok := got[r.Policy]; !ok || gravity(r.Kyverno) > gravity(old.Kyverno) {
				got[r.Policy] = r
			}
		}
		for name, want := range recorded.Status {
			cases++
			if got[name].Kyverno != want {
				t.Errorf("case %s %s: want %s, got %s (%s)", c.ID, name, want, got[name].Kyverno, got[name].Message)
			}
		}
	}
	return cases
}

func gravity(s Status) int {
	return slices.Index([]Status{None, Skip, Pass, Error, Fail}, s)
}
