//go:build e2e

package replay

import (
	"context"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/kvap/kvap/test/e2e/chainsaw"
)

var (
	conformance = flag.Bool("conformance", false, "run Kyverno's own cluster tests, which takes long")
	clusters    = flag.Int("clusters", 3, "how many control planes share Kyverno's own cluster tests")
	update      = flag.Bool("update", false, "write the table of Kyverno's own cluster tests")
	all         = flag.Bool("all", false, "also run Kyverno's cluster tests that are counted apart; say how they go")
)

// How long assertions may take to come true; and those of tests that are known to fail,
// which are run to learn when they do not.
const (
	patient   = 30 * time.Second
	impatient = 8 * time.Second
)

// Of Kyverno's own cluster tests in the corpus, those pass that are not said to fail. A
// control plane runs one test after the other, for policies judge what others do; several
// control planes share the tests.
func TestConformance(t *testing.T) {
	if !*conformance {
		t.Skip("make e2e-conformance runs Kyverno's own cluster tests")
	}
	folder := filepath.Join(*corpus, "conformance")
	tests := conformanceTests(t, folder)
	known := readKnown(t, tests)
	free := make(chan *conformer, *clusters)
	for range *clusters {
		free <- newConformer(t)
	}
	began := time.Now()
	results := &results{known: known, tests: tests}
	t.Run("tests", func(t *testing.T) {
		for i, name := range tests {
			t.Run(name, func(t *testing.T) {
				apart, err := known.apart(folder, name)
				if err != nil {
					t.Fatal(err)
				}
				if apart != "" && !*all {
					results.put(name, outcome{apart: apart})
					return
				}
				t.Parallel()
				c := <-free
				defer func() { free <- c }()
				started := time.Now()
				c.cluster.Patience = patient
				if known.Failing[name] != "" {
					c.cluster.Patience = impatient
				}
				failed := c.conform(t, filepath.Join(folder, name), fmt.Sprintf("chainsaw-%d", i))
				t.Logf("%s", time.Since(started).Round(time.Millisecond))
				results.put(name, outcome{apart: apart, failed: failed})
				switch {
				case apart != "":
					t.Logf("counted apart (%s): %v", apart, failed)
				case failed != nil && known.Failing[name] == "":
					t.Error(failed)
				case failed != nil:
					t.Logf("known to fail (%s): %v", known.Failing[name], failed)
				case known.Failing[name] != "":
					t.Errorf("it passes, and is said to fail: %s", known.Failing[name])
				}
			})
		}
	})
	t.Logf("%s in %s", results.summary(), time.Since(began).Round(time.Second))
	if *update && *only == "" {
		if err := os.WriteFile(conformanceTable, []byte(results.table()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// conformanceTests are the names of the tests of a folder: their paths.
func conformanceTests(t *testing.T, folder string) (tests []string) {
	t.Helper()
	wanted, err := regexp.Compile(*only)
	if err != nil {
		t.Fatal(err)
	}
	err = filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.Name() != chainsaw.FileName {
			return err
		}
		name, err := filepath.Rel(folder, filepath.Dir(path))
		if wanted.MatchString(name) {
			tests = append(tests, name)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(tests) == 0 {
		t.Fatal("there are no tests: the corpus is not at hand")
	}
	return tests
}

// known is what is known of tests, by their paths.
type known struct {
	// Reasons are why tests are counted apart.
	Reasons map[string]string
	// Apart names the reason for each test that is.
	Apart map[string]string
	// Failing says why a test fails that should pass.
	Failing map[string]string
}

func readKnown(t *testing.T, tests []string) (k known) {
	t.Helper()
	data, err := os.ReadFile("testdata/conformance.yaml")
	if err == nil {
		err = yaml.UnmarshalStrict(data, &k)
	}
	if err != nil {
		t.Fatal(err)
	}
	for name, reason := range k.Apart {
		if k.Reasons[reason] == "" {
			t.Errorf("%s is counted apart for %q, which is not a reason", name, reason)
		}
		if k.Failing[name] != "" {
			t.Errorf("%s is counted apart and said to fail", name)
		}
		if *only == "" && !slices.Contains(tests, name) {
			t.Errorf("%s is counted apart, and is not a test", name)
		}
	}
	for name := range k.Failing {
		if *only == "" && !slices.Contains(tests, name) {
			t.Errorf("%s is said to fail, and is not a test", name)
		}
	}
	return k
}

// apart says why a test is counted apart, and is empty where it is judged.
func (k known) apart(folder, name string) (string, error) {
	if reason := k.Apart[name]; reason != "" {
		return k.Reasons[reason], nil
	}
	files, err := filepath.Glob(filepath.Join(folder, name, "*.yaml"))
	if err != nil {
		return "", err
	}
	for _, file := range files {
		objects, err := chainsaw.Objects(file)
		if err != nil {
			return "", err
		}
		for _, o := range objects {
			if isPolicy(o) && slices.Contains(verifying(), o.GetKind()) {
				return k.Reasons["registries"], nil
			}
		}
	}
	test, err := chainsaw.Read(filepath.Join(folder, name))
	if err != nil {
		return "", err
	}
	asserted, err := test.Asserted()
	if err != nil {
		return "", err
	}
	for _, o := range asserted {
		switch {
		case strings.HasSuffix(o.GetKind(), "WebhookConfiguration"):
			return k.Reasons["webhooks"], nil
		}
	}
	return "", nil
}

// verifying are the kinds of policies that ask registries, which nobody reaches here.
func verifying() []string {
	return []string{"ImageValidatingPolicy", "NamespacedImageValidatingPolicy"}
}

// conform runs a test; the error is why it does not pass.
func (c *conformer) conform(t *testing.T, folder, namespace string) error {
	t.Helper()
	test, err := chainsaw.Read(folder)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	failed := test.Run(ctx, &c.cluster, namespace)
	if err := c.sweep(context.WithoutCancel(t.Context())); err != nil {
		t.Fatalf("the cluster is not as it was: %v", err)
	}
	return failed
}
