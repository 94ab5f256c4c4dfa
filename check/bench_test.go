package check_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/check"
	"github.com/kvap/kvap/compile"
	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/translate"
)

// corpus is all policies of the corpus, where it is at hand, converted for a release.
func corpus(t testing.TB, release cel.Release) []*check.Object {
	t.Helper()
	const root = "../../shared/corpus/policies"
	if _, err := os.Stat(root); err != nil {
		t.Skip("no corpus at hand:", err)
	}
	var in compile.Input
	seen := map[string]bool{}
	err := filepath.WalkDir(root, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".yaml") {
			return err
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		f, _ := policy.Parse(filepath.Base(path), data)
		for _, p := range f.Policies {
			if key := p.Kind + p.Namespace + "/" + p.Name; !seen[key] && p.Source.Get("status") == nil {
				seen[key] = true
				in.Policies = append(in.Policies, p)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	done := compile.Policies(in, compile.Options{Translate: translate.Options{
		Release: release, Schemas: schemas(t, release)[release], Pack: translate.PackPolicy, Params: translate.ParamsConfigMap, Existing: translate.AllowExisting,
	}})
	return check.Made(done.Objects, done.Mutating, release)
}

// BenchmarkCorpus checks all policies of the corpus for one release. It must stay
// below 10 s of two cores, and the program below 500 MB.
func BenchmarkCorpus(b *testing.B) {
	objects := corpus(b, cel.Default)
	for b.Loop() {
		check.Objects(objects, check.Options{Schemas: schemas(b, cel.Default)})
	}
	b.ReportMetric(float64(len(objects)), "objects")
}
