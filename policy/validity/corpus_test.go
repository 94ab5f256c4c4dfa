package validity_test

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/policy/validity"
	"github.com/kvap/kvap/schema"
)

// corpus is the folder of public policies that stands beside the repository, where there is one.
func corpus(t *testing.T) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for ; ; dir = filepath.Dir(dir) {
		candidate := filepath.Join(dir, "shared", "corpus")
		if _, err := os.Stat(filepath.Join(candidate, "index.json")); err == nil {
			return candidate
		}
		if dir == filepath.Dir(dir) {
			t.Skip("there is no shared/corpus beside the repository; the public policies are not tried")
		}
	}
}

// refusedByKyverno are the files of the corpus that Kyverno, or its definitions, refuse too.
func refusedByKyverno() map[string]string {
	return map[string]string{
		"mutate/cost-optimization/schedule-based-quotas/schedule-based-quotas.yaml": "variable is a text, and the definition wants a map",
		"mutatingpolicy/constructs/admission-disabled/policy.yaml":                  "admission and mutateExisting are off",
		"realworld/davidmarkgardiner__scratchpad/002-prevent-duplicate-hostnames":   "no operator is called Contains",
		"realworld/davidmarkgardiner__scratchpad/021-prevent-duplicate-hostnames":   "no operator is called Contains",
		"realworld/davidmarkgardiner__scratchpad/076-validate-ns-istio-injection":   "no operator is called StartsWith",
		"realworld/davidmarkgardiner__scratchpad/136-prevent-istio-injection-label": "no operator of selectors is called Matches",
	}
}

// refusals are what is refused in a file, which may hold parts of policies: what tests assert, and
// patches.
func refusals(t *testing.T, set *schema.Set, name string, data []byte) (policies int, refused diag.List) {
	t.Helper()
	data = bytes.ReplaceAll(data, []byte("($test.metadata.name)"), []byte("of-the-test"))
	f, found := validity.Written(t.Context(), name, data, set.Resources)
	partial := map[int]bool{}
	whole := func(doc *policy.Node) bool {
		rules := doc.Get("spec").Get("rules")
		is := doc.Get("spec") != nil && doc.Get("status") == nil && (rules == nil || len(rules.Items) > 0)
		partial[doc.Pos.Line] = !is
		return is
	}
	for _, p := range f.Policies {
		if whole(p.Source) {
			policies++
		}
	}
	for _, c := range f.Cleanups {
		if whole(c.Source) {
			policies++
		}
	}
	for _, e := range f.Exceptions {
		if whole(e.Source) {
			policies++
		}
	}
	for _, d := range found {
		at := 0 // the document that it is in
		for line := range partial {
			if line <= d.Line {
				at = max(at, line)
			}
		}
		if d.Severity == diag.Error && !partial[at] {
			refused = append(refused, d)
		}
	}
	return policies, refused
}

// Nothing is refused of public policies that Kyverno takes.
func TestCorpusIsTaken(t *testing.T) {
	root, set, wrongly := corpus(t), known(t), 0
	seen := map[string]bool{}
	judge := func(name string, data []byte) (policies int) {
		policies, refused := refusals(t, set, name, data)
		if why := refusedByKyverno()[name]; why != "" && len(refused) > 0 {
			seen[name] = true
			return policies
		}
		for _, d := range refused {
			wrongly++
			t.Errorf("%v", d)
		}
		return policies
	}
	for _, folder := range []string{"policies", "generate", "mutate", "cleanup", "cli", "validatingpolicy", "mutatingpolicy"} {
		total := 0
		err := filepath.WalkDir(filepath.Join(root, folder), func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || filepath.Ext(path) != ".yaml" || d.Name() == "chainsaw-test.yaml" {
				return err
			}
			data, err := os.ReadFile(path)
			name, _ := filepath.Rel(root, path)
			total += judge(filepath.ToSlash(name), data)
			return err
		})
		if err != nil || total == 0 {
			t.Errorf("%s: %d policies: %v", folder, total, err)
		}
		t.Logf("%s: %d policies", folder, total)
	}
	total := 0
	for dir, text := range realworld(t, root) {
		total += judge("realworld/"+dir, []byte(text))
	}
	t.Logf("realworld: %d policies", total)
	t.Logf("%d are refused as Kyverno refuses them, %d wrongly", len(seen), wrongly)
	for name := range refusedByKyverno() {
		if !seen[name] {
			t.Errorf("%s is said to be refused by Kyverno, and is taken", name)
		}
	}
}

// realworld are the policies of organisations, by their names.
func realworld(t *testing.T, root string) map[string]string {
	t.Helper()
	file, err := os.Open(filepath.Join(root, "realworld", "policies.jsonl.gz"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	zipped, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	lines := bufio.NewScanner(zipped)
	lines.Buffer(nil, 64<<20)
	for lines.Scan() {
		var one struct{ Dir, Policy string }
		if err := json.Unmarshal(lines.Bytes(), &one); err != nil {
			t.Fatal(err)
		}
		out[one.Dir] = one.Policy
	}
	if err := lines.Err(); err != nil || len(out) == 0 {
		t.Fatal(err)
	}
	return out
}

// takenByCluster are files that a conformance test wants refused for what is in its cluster.
func takenByCluster() map[string]string {
	const (
		unserved = "the cluster serves no such kind: a warning"
		grants   = "Kyverno's account has no permission to make the target"
		scope    = "the scope of a custom kind: the cluster knows it"
		update   = "what an update changes: TestChange"
	)
	return map[string]string{
		"webhooks/unknown-kind/policy-1.yaml": unserved,
		"webhooks/unknown-kind/policy-2.yaml": unserved,
		"webhooks/unknown-kind/policy-3.yaml": unserved,
		"webhooks/unknown-kind/policy-4.yaml": unserved,

		"generate/validation/clusterpolicy/permissions/no-permission/policy.yaml": grants,
		"generate/validation/policy/permissions/policy.yaml":                      grants,

		"mutate/clusterpolicy/standard/existing/validation/auth-check/cpol-standard-auth-check/policy.yaml":             grants,
		"mutate/clusterpolicy/standard/existing/validation/auth-check/cpol-standard-auth-check(deprecated)/policy.yaml": grants,

		"generate/validation/clusterpolicy/target-namespace-scope/policy-fail-2-ns-cluster-target.yaml": scope,
		"generate/validation/policy/target-namespace-scope/policy-fail-1.yaml":                          scope,

		"generate/validation/policy/immutable-rule-spec/update-rule-name.yaml":          update,
		"generate/validation/policy/immutable-rule-spec/update-rule-match.yaml":         update,
		"generate/validation/policy/immutable-rule-spec/update-rule-exclude.yaml":       update,
		"generate/validation/policy/immutable-rule-spec/update-rule-preconditions.yaml": update,
	}
}

// What Kyverno's own cluster tests apply is taken, and what they want refused is refused.
func TestConformance(t *testing.T) {
	root, set := filepath.Join(corpus(t), "conformance"), known(t)
	taken, refused, apart := 0, 0, map[string]bool{}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.Name() != "chainsaw-test.yaml" {
			return err
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		var test any
		if err := yaml.Unmarshal(data, &test); err != nil {
			return err
		}
		for file, wanted := range applied(test) {
			name, _ := filepath.Rel(root, filepath.Join(filepath.Dir(path), file))
			data, err := os.ReadFile(filepath.Join(root, name))
			if err != nil {
				continue // a file that the corpus lacks
			}
			policies, found := refusals(t, set, name, data)
			switch {
			case policies == 0:
			case wanted && len(found) == 0 && takenByCluster()[name] == "":
				t.Errorf("%s is to be refused, and is taken", name)
			case wanted && len(found) == 0:
				apart[name] = true
			case wanted:
				refused++
			case len(found) > 0:
				t.Errorf("%s is to be taken: %v", name, found)
			default:
				taken += policies
			}
		}
		return nil
	})
	if err != nil || taken == 0 || refused == 0 {
		t.Errorf("%d taken, %d refused: %v", taken, refused, err)
	}
	for name := range takenByCluster() {
		if !apart[name] {
			t.Errorf("%s is said to be taken, and is not", name)
		}
	}
	t.Logf("%d policies are taken; %d files are refused as they should be, and %d for what only a cluster knows", taken, refused, len(apart))
}

// applied are the files that a test applies, and whether they are to be refused.
func applied(node any) map[string]bool {
	out := map[string]bool{}
	var walk func(any)
	walk = func(node any) {
		switch n := node.(type) {
		case []any:
			for _, item := range n {
				walk(item)
			}
		case map[string]any:
			for _, key := range []string{"apply", "create", "update"} {
				if step, ok := n[key].(map[string]any); ok {
					if file, ok := step["file"].(string); ok {
						text, _ := json.Marshal(step["expect"])
						out[file] = out[file] || bytes.Contains(text, []byte(`($error != null)":true`))
					}
				}
			}
			if script, ok := n["script"].(map[string]any); ok {
				content, _ := script["content"].(string)
				text, _ := json.Marshal(script["check"])
				words := strings.Fields(content)
				if i := slices.Index(words, "-f"); i > 0 && i+1 < len(words) && bytes.Contains(text, []byte(`($error != null)":true`)) {
					out[words[i+1]] = true
				}
			}
			if name, ok := n["name"].(string); ok && name == "file" {
				if file, ok := n["value"].(string); ok { // of the template that creates a policy
					out[file] = out[file] || false
				}
			}
			for _, value := range n {
				walk(value)
			}
		}
	}
	walk(node)
	return out
}
