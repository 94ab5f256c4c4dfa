package compile_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/kvap/kvap/compile"
	"github.com/kvap/kvap/policy"
)

// BenchmarkCorpus compiles all policies of a folder, where one is at hand.
func BenchmarkCorpus(b *testing.B) {
	for _, folder := range []string{"policies", "validatingpolicy"} {
		files, err := filepath.Glob(filepath.Join("../../shared/corpus", folder, "*", "*", "policy.yaml"))
		if err != nil || len(files) == 0 {
			files, _ = filepath.Glob(filepath.Join("../../shared/corpus", folder, "*", "policy.yaml"))
		}
		b.Run(folder, func(b *testing.B) {
			var in compile.Input
			for _, file := range files {
				data, err := os.ReadFile(file)
				if err != nil {
					b.Fatal(err)
				}
				f, _ := policy.Parse(file, data)
				in.Policies = append(in.Policies, f.Policies...)
				in.Exceptions = append(in.Exceptions, f.Exceptions...)
			}
			b.Logf("%d policies", len(in.Policies))
			o := options(b)
			for b.Loop() {
				compile.Policies(in, o)
			}
		})
	}
}
