//go:build e2e

package controlplane

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

func TestKubectl(t *testing.T) {
	t.Parallel()
	program, err := Kubectl(t.Context(), os.Stderr)
	if err != nil {
		t.Fatal(err)
	}
	said, err := exec.CommandContext(t.Context(), program, "version", "--client").Output()
	if err != nil || !strings.HasPrefix(string(said), "Client Version: v1.") {
		t.Errorf("%s version: %s, %v", program, said, err)
	}
}
