package main

import (
	"errors"
	"io"
	"strings"
	"testing"
)

type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) { return 0, errors.New("no space left") }

// Output that cannot be written is no fault of the usage.
func TestFullDiskIsARuntimeError(t *testing.T) {
	t.Parallel()
	for _, args := range []string{"version", "version -o json", "--version", "explain", "explain KV201", "--help", "help convert", "eval --help", "", "completion bash"} {
		if code := run(append([]string{"kvap"}, strings.Fields(args)...), nil, fullDisk{}, io.Discard); code != exitRuntime {
			t.Errorf("kvap %s: exit code %d, want %d", args, code, exitRuntime)
		}
	}
}
