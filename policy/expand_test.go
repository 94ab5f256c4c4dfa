package policy_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kvap/kvap/policy"
)

type indexEntry struct {
	Dir   string
	Cases int
	Rules []struct {
		Rule     string
		Verdicts map[string]int
	}
}

func corpusIndex(t *testing.T) []indexEntry {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(corpus(t), "index.json"))
	if err != nil {
		t.Fatal(err)
	}
	var index struct{ Policies []indexEntry }
	if err := json.Unmarshal(data, &index); err != nil {
		t.Fatal(err)
	}
	return index.Policies
}

// The index names each rule that gave a verdict, as Kyverno's engine expanded it.
func TestExpandAsInCorpus(t *testing.T) {
	for _, entry := range corpusIndex(t) {
		data, err := os.ReadFile(filepath.Join(corpus(t), "policies", entry.Dir, "policy.yaml"))
		if err != nil {
			t.Fatal(err)
		}
		f, _ := policy.Parse("policy.yaml", data)
		got := names(policy.Expand(f.Policies[0]))
		var want []string
		for _, rule := range entry.Rules {
			want = append(want, rule.Rule)
		}
		slices.Sort(got)
		slices.Sort(want)
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s (-index +expanded):\n%s", entry.Dir, d)
		}
	}
}

func names(rules []*policy.Rule) (names []string) {
	for _, r := range rules {
		names = append(names, r.Name)
	}
	return names
}
