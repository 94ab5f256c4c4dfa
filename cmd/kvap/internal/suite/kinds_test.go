package suite

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/kvap/kvap/internal/proven"
)

// Of suites for each kind of policies.kyverno.io, as users write them for the Kyverno command
// line, every row is judged, and as the specification has it.
func TestSuitesOfEachKind(t *testing.T) {
	files, err := filepath.Glob("testdata/*/kyverno-test.yaml")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	rows := 0
	for _, file := range files {
		t.Run(filepath.Base(filepath.Dir(file)), func(t *testing.T) {
			suites, found := Read(file)
			if found.HasErrors() || len(suites) != 1 {
				t.Fatal(found)
			}
			run := runner(t)
			if dir := filepath.Join(filepath.Dir(file), "registry"); isDir(dir) {
				registry, err := proven.Open(dir, nil)
				if err != nil {
					t.Fatal(err)
				}
				run.Registry, run.Metadata = registry, registry.Image
			}
			results, found := run.Run(t.Context(), suites[0])
			if found.HasErrors() {
				t.Error(found)
			}
			for _, r := range results.Rows {
				rows++
				if r.Verdict != Passed || r.Reason == "Excluded" {
					t.Errorf("%s:%d: %s on %s: %s %s (%s)", r.Pos.File, r.Pos.Line, r.Policy, r.Resource, r.Verdict, r.Reason, r.Message)
				}
			}
		})
	}
	if rows < 60 {
		t.Errorf("there are only %d rows", rows)
	}
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}
