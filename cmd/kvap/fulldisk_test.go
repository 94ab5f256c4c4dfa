package main

import (
	"errors"
	"io"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kvap/kvap/internal/exit"
)

type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) { return 0, errors.New("no space left") }

// Output that cannot be written is no fault of the usage.
func TestFullDiskIsARuntimeError(t *testing.T) {
	t.Parallel()
	dir, _ := workplace(t)
	at := strings.NewReplacer("POLICY", filepath.Join(dir, "policy.yaml"), "NATIVE", filepath.Join(dir, "typo.yaml"))
	for _, args := range []string{
		"version", "version -o json", "--version", "explain", "explain KV201", "--help", "help convert", "eval --help", "", "completion bash",
		"convert POLICY", "convert POLICY -o json", "convert POLICY --report - --report-format html",
		"check NATIVE", "check NATIVE -o json", "check NATIVE -o sarif", "check NATIVE -o junit", "check NATIVE -o markdown", "check NATIVE -o github", "check NATIVE -o html",
		"eval POLICY --resource NATIVE", "eval POLICY --resource NATIVE -o jsonl", "verify POLICY --budget 5", "verify POLICY --budget 5 -o json",
		"migrate plan POLICY", "migrate plan POLICY -o html", "migrate compare -f POLICY --verify 5", "migrate adopt -f POLICY --dry-run=client",
		"migrate shadow -f POLICY --dry-run=client --output-dir x",
	} {
		args := at.Replace(args)
		if code := run(append([]string{"kvap"}, strings.Fields(args)...), nil, fullDisk{}, io.Discard); code != exit.CodeRuntime {
			t.Errorf("kvap %s: exit code %d, want %d", args, code, exit.CodeRuntime)
		}
	}
}
