package policy_test

import (
	"bufio"
	"compress/gzip"
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/policy"
)

// corpus is the folder of public policies that stands beside the repository, where
// there is one.
func corpus(tb testing.TB) string {
	tb.Helper()
	dir, err := os.Getwd()
	if err != nil {
		tb.Fatal(err)
	}
	for ; ; dir = filepath.Dir(dir) {
		candidate := filepath.Join(dir, "shared", "corpus")
		if _, err := os.Stat(filepath.Join(candidate, "index.json")); err == nil {
			return candidate
		}
		if dir == filepath.Dir(dir) {
			tb.Skip("there is no shared/corpus beside the repository; the public policies are not tried")
		}
	}
}

// corpusFiles calls visit for each YAML file of the corpus whose name matches.
func corpusFiles(tb testing.TB, match func(path string) bool, visit func(path string, data []byte)) {
	tb.Helper()
	corpusFilesIn(tb, "policies", match, visit)
}

func corpusFilesIn(tb testing.TB, folder string, match func(path string) bool, visit func(path string, data []byte)) {
	tb.Helper()
	root := corpus(tb)
	err := filepath.WalkDir(filepath.Join(root, folder), func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !match(path) {
			return err
		}
		data, err := os.ReadFile(path)
		if err == nil {
			rel, _ := filepath.Rel(root, path)
			visit(rel, data)
		}
		return err
	})
	if err != nil {
		tb.Fatal(err)
	}
}

func TestCorpusParses(t *testing.T) {
	count := 0
	corpusFiles(t, func(path string) bool { return filepath.Base(path) == "policy.yaml" }, func(path string, data []byte) {
		f, ds := policy.Parse(path, data)
		for _, d := range ds {
			t.Errorf("%v", d)
		}
		if len(f.Policies) != 1 || len(f.Policies[0].Rules) == 0 {
			t.Errorf("%s: %d policies", path, len(f.Policies))
		}
		count++
	})
	if count < 100 {
		t.Errorf("only %d policies found", count)
	}
}

// Test manifests hold policies, patches of policies, and resources. Whatever calls
// itself a whole policy parses; all else is passed over with a note.
func TestCorpusTestsParse(t *testing.T) {
	notes := 0
	corpusFiles(t, func(path string) bool {
		return filepath.Ext(path) == ".yaml" && filepath.Base(path) != "policy.yaml"
	}, func(path string, data []byte) {
		f, ds := policy.Parse(path, data)
		partial := strings.Contains(string(data), "status:") && !strings.Contains(string(data), "rules:")
		for _, d := range ds {
			switch {
			case d.Code == diag.OtherKind && d.Severity == diag.Note:
				notes++
			case partial && d.Code == diag.Missing:
				// An assertion names only the status of a policy.
			default:
				t.Errorf("%v", d)
			}
		}
		for _, p := range f.Policies {
			if p.Invalid && !partial {
				t.Errorf("%s: invalid", path)
			}
		}
	})
	if notes == 0 {
		t.Error("no resource was passed over")
	}
}

func TestGeneratedRulesParse(t *testing.T) {
	for _, line := range generatedRules(t) {
		f, ds := policy.Parse(line.ID, line.Policy)
		for _, d := range ds {
			t.Errorf("%v", d)
		}
		if len(f.Policies) != 1 {
			t.Errorf("%s: %d policies", line.ID, len(f.Policies))
		}
	}
}

type generatedRule struct {
	ID     string
	Policy json.RawMessage
}

func generatedRules(tb testing.TB) (rules []generatedRule) {
	tb.Helper()
	file, err := os.Open(filepath.Join(corpus(tb), "generated", "rules.jsonl.gz"))
	if err != nil {
		tb.Fatal(err)
	}
	defer file.Close()
	unzipped, err := gzip.NewReader(file)
	if err != nil {
		tb.Fatal(err)
	}
	lines := bufio.NewScanner(unzipped)
	lines.Buffer(nil, 64<<20)
	for lines.Scan() {
		var rule generatedRule
		if err := json.Unmarshal(lines.Bytes(), &rule); err != nil {
			tb.Fatal(err)
		}
		rules = append(rules, rule)
	}
	if err := lines.Err(); err != nil {
		tb.Fatal(err)
	}
	return rules
}
