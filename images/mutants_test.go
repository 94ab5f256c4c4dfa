package images

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

var runMutants = flag.Bool("mutants", false, "run the tests against each mutant of testdata/mutants.txt: some five minutes")

// A mutant is a check that is removed. The tests that are named with it must fail then.
type mutant struct{ name, file, old, new, pkg, tests string }

// readMutants reads blocks of this form:
//
//	== what is removed
//	FILE [PACKAGE] TESTS
//	- the text that is there
//	+ the text in its place
func readMutants(t *testing.T) []mutant {
	t.Helper()
	data, err := os.ReadFile("testdata/mutants.txt")
	if err != nil {
		t.Fatal(err)
	}
	var out []mutant
	_, blocks, _ := strings.Cut(string(data), "\n== ")
	for block := range strings.SplitSeq(blocks, "\n== ") {
		lines := strings.Split(strings.TrimRight(block, "\n"), "\n")
		if len(lines) < 3 {
			continue
		}
		m := mutant{name: lines[0]}
		where := strings.Fields(lines[1])
		m.file, m.pkg, m.tests = where[0], "./"+filepath.Dir(where[0]), where[len(where)-1]
		if len(where) == 3 {
			m.pkg = where[1]
		}
		for _, line := range lines[2:] {
			if text, ok := strings.CutPrefix(line, "- "); ok {
				m.old += text + "\n"
			} else if text, ok := strings.CutPrefix(line, "+ "); ok {
				m.new += text + "\n"
			} else {
				t.Fatalf("%s: %q", m.name, line)
			}
		}
		m.old, m.new = strings.TrimSuffix(m.old, "\n"), strings.TrimSuffix(m.new, "\n")
		out = append(out, m)
	}
	return out
}

// Each check of the verifier is missed by a test. Without -mutants it is only made sure that the
// list is about the code as it is.
func TestMutants(t *testing.T) {
	for _, m := range readMutants(t) {
		t.Run(strings.ReplaceAll(m.name, " ", "-"), func(t *testing.T) {
			path, err := filepath.Abs(filepath.Join("..", filepath.FromSlash(m.file)))
			if err != nil {
				t.Fatal(err)
			}
			data, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if count := bytes.Count(data, []byte(m.old)); count != 1 {
				t.Fatalf("%s has %d times %q", m.file, count, m.old)
			}
			if !*runMutants {
				return
			}
			dir := t.TempDir()
			changed, overlay := filepath.Join(dir, "changed.go"), filepath.Join(dir, "overlay.json")
			list, err := json.Marshal(map[string]any{"Replace": map[string]string{path: changed}})
			if err != nil {
				t.Fatal(err)
			}
			for name, data := range map[string][]byte{changed: bytes.Replace(data, []byte(m.old), []byte(m.new), 1), overlay: list} {
				if err := os.WriteFile(name, data, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			run := exec.CommandContext(t.Context(), "go", "test", "-count=1", "-vet=off", "-overlay", overlay, "-run", m.tests, m.pkg)
			run.Dir = ".."
			said, err := run.CombinedOutput()
			switch {
			case err == nil:
				t.Errorf("no test of %s misses it", m.tests)
			case !bytes.Contains(said, []byte("--- FAIL")) && !bytes.Contains(said, []byte("panic: ")):
				t.Errorf("it is no program: %s", said)
			}
		})
	}
}
