package interp

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	kjson "k8s.io/apimachinery/pkg/util/json"

	"github.com/kvap/kvap/internal/deviation"
	"github.com/kvap/kvap/interp/internal/datum"
	"github.com/kvap/kvap/policy"
)

const corpusDir = "../../shared/corpus"

// A corpusCase is a request with the status that Kyverno's engine gave.
type corpusCase struct {
	ID              string            `json:"id"`
	Request         json.RawMessage   `json:"request"`
	NamespaceLabels map[string]string `json:"namespaceLabels"`
	Roles           []string          `json:"roles"`
	ClusterRoles    []string          `json:"clusterRoles"`
	Verdicts        map[string]Status `json:"verdicts"`
	EnforceVerdicts map[string]Status `json:"enforceVerdicts"`
	Verdict         Status            `json:"verdict"`
}

func (c *corpusCase) request(t *testing.T, action policy.Action) *Request {
	t.Helper()
	admission, err := ParseAdmission(c.Request)
	if err != nil {
		t.Fatal(err)
	}
	return &Request{Admission: admission, NamespaceLabels: c.NamespaceLabels, Roles: c.Roles, ClusterRoles: c.ClusterRoles, Action: action, Exact: true}
}

func needCorpus(t testing.TB) {
	t.Helper()
	if _, err := os.Stat(corpusDir); err != nil {
		t.Skip("the corpus is not beside the repository; nothing to compare with")
	}
}

func corpusPolicies(t testing.TB) []string {
	t.Helper()
	needCorpus(t)
	var dirs []string
	err := filepath.WalkDir(corpusDir+"/policies", func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Name() == "cases.jsonl.gz" {
			dirs = append(dirs, filepath.Dir(path))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return dirs
}

// lines reads a compressed file line by line.
func lines(t testing.TB, path string) [][]byte {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	data, err := io.ReadAll(bufio.NewReader(z))
	if err != nil {
		t.Fatal(err)
	}
	return slices.Collect(bytes.Lines(data))
}

func readPolicies(t testing.TB, name string, data []byte) []*policy.Policy {
	t.Helper()
	f, ds := policy.Parse(name, data)
	if ds.HasErrors() {
		t.Fatalf("%s: %v", name, ds)
	}
	return f.Policies
}

func corpusWorld(t testing.TB, dir string) *Offline {
	t.Helper()
	data, err := os.ReadFile(dir + "/configmaps.json")
	if os.IsNotExist(err) {
		return &Offline{}
	}
	var list []map[string]any
	if err := kjson.Unmarshal(data, &list); err != nil {
		t.Fatal(err)
	}
	for _, object := range list {
		object["apiVersion"], object["kind"] = "v1", "ConfigMap"
	}
	return &Offline{Objects: list}
}

// listed is the deliberate difference from Kyverno that a rule shows on a case; 0
// for none.
func listed(rule *policy.Rule, admission map[string]any, want, said Status) int {
	operation, _ := admission["operation"].(string)
	l, _ := deviation.Of(deviation.Difference{
		Rule: rule, Operation: operation, Object: admission["object"], Before: admission["oldObject"], Want: string(want), Said: string(said),
	})
	return l.Number
}

// ruleNamed finds a rule among those for a request's kind.
func ruleNamed(policies []*policy.Policy, kind, name string) *policy.Rule {
	for _, p := range policies {
		for _, r := range p.RulesFor(kind) {
			if r.Name == name {
				return r
			}
		}
	}
	return nil
}

// TestCorpus compares every status with Kyverno's. Kyverno's own status counts,
// so that deviation 2 shows as agreement.
func TestCorpus(t *testing.T) {
	for _, dir := range corpusPolicies(t) {
		name, _ := filepath.Rel(corpusDir+"/policies", dir)
		t.Run(name, func(t *testing.T) {
			data, err := os.ReadFile(dir + "/policy.yaml")
			if err != nil {
				t.Fatal(err)
			}
			policies := readPolicies(t, name, data)
			in := New(policies, nil, corpusWorld(t, dir), Limits{})
			for _, line := range lines(t, dir+"/cases.jsonl.gz") {
				var c corpusCase
				if err := json.Unmarshal(line, &c); err != nil {
					t.Fatal(err)
				}
				compareCase(t, in, policies, &c, "", c.Verdicts)
				enforced := c.EnforceVerdicts
				if enforced == nil {
					enforced = c.Verdicts
				}
				compareCase(t, in, policies, &c, policy.Enforce, enforced)
			}
		})
	}
}

// compareCase reports every rule whose status is not the wanted one. Rules with
// none are absent in the corpus.
func compareCase(t *testing.T, in *Interpreter, policies []*policy.Policy, c *corpusCase, action policy.Action, want map[string]Status) {
	t.Helper()
	got := map[string]RuleResult{}
	request := c.request(t, action)
	for _, r := range in.Judge(context.Background(), request) {
		if r.Kyverno != None {
			got[r.Rule] = r
		}
	}
	rules := maps.Clone(want)
	for name := range got {
		if _, ok := rules[name]; !ok {
			rules[name] = None
		}
	}
	for _, name := range datum.Keys(rules) {
		status := got[name].Kyverno
		if status == "" {
			status = None
		}
		if status == rules[name] {
			continue
		}
		if n := listed(ruleNamed(policies, digText(request.Admission, "kind", "kind"), name), request.Admission, rules[name], status); n > 0 {
			t.Logf("case %s action %q rule %s: Kyverno says %s, kvap %s: deviation %d", c.ID, action, name, rules[name], status, n)
		} else {
			t.Errorf("case %s action %q rule %s: want %s, got %s (%s)", c.ID, action, name, rules[name], status, got[name].Message)
		}
	}
}

// TestGeneratedRules compares the random rules of the corpus.
func TestGeneratedRules(t *testing.T) {
	needCorpus(t)
	agreed, total := 0, 0
	for _, line := range lines(t, corpusDir+"/generated/rules.jsonl.gz") {
		var rule struct {
			ID     string          `json:"id"`
			Policy json.RawMessage `json:"policy"`
			Cases  []corpusCase    `json:"cases"`
		}
		if err := json.Unmarshal(line, &rule); err != nil {
			t.Fatal(err)
		}
		policies := readPolicies(t, "policy.json", rule.Policy)
		in := New(policies, nil, &Offline{}, Limits{})
		for _, c := range rule.Cases {
			request := c.request(t, "")
			got := in.Judge(context.Background(), request)[0]
			total++
			if got.Kyverno == c.Verdict {
				agreed++
				continue
			}
			if n := listed(policies[0].Rules[0], request.Admission, c.Verdict, got.Kyverno); n > 0 {
				t.Logf("rule %s case %s: Kyverno says %s, kvap %s: deviation %d", rule.ID, c.ID, c.Verdict, got.Kyverno, n)
				continue
			}
			t.Errorf("rule %s case %s: want %s, got %s (%s)", rule.ID, c.ID, c.Verdict, got.Kyverno, got.Message)
		}
	}
	t.Logf("%d of %d agree", agreed, total)
}

// BenchmarkJudge judges the cases of a typical policy.
func BenchmarkJudge(b *testing.B) {
	needCorpus(b)
	dir := corpusDir + "/policies/best-practices/require-drop-all/require-drop-all"
	if _, err := os.Stat(dir); err != nil {
		dir = corpusDir + "/policies/best-practices/require-drop-all"
	}
	data, err := os.ReadFile(dir + "/policy.yaml")
	if err != nil {
		b.Fatal(err)
	}
	in := New(readPolicies(b, "policy.yaml", data), nil, &Offline{}, Limits{})
	var requests []*Request
	for _, line := range lines(b, dir+"/cases.jsonl.gz") {
		var c corpusCase
		if err := json.Unmarshal(line, &c); err != nil {
			b.Fatal(err)
		}
		admission, err := ParseAdmission(c.Request)
		if err != nil {
			b.Fatal(err)
		}
		requests = append(requests, &Request{Admission: admission})
	}
	for i := 0; b.Loop(); i++ {
		in.Judge(context.Background(), requests[i%len(requests)])
	}
}
