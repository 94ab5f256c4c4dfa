package controlplane

import (
	"context"
	_ "embed"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
)

// kubectlMod is the go.mod of the module that kubectl is built from.
//
//go:embed kubectl/mod
var kubectlMod []byte

// kubectlSum is its go.sum.
//
//go:embed kubectl/sum
var kubectlSum []byte

// kubectlMain is its only file.
//
//go:embed kubectl/main
var kubectlMain []byte

// Kubectl returns the program kubectl for scripts: the one that is on the path, or one in
// the user's cache, which it builds first if need be.
func Kubectl(ctx context.Context, progress io.Writer) (string, error) {
	if path, err := exec.LookPath("kubectl"); err == nil {
		return path, nil
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	version := string(regexp.MustCompile(`k8s\.io/kubectl (v\S+)`).FindSubmatch(kubectlMod)[1])
	root := filepath.Join(cache, "kvap", "kubectl-"+version)
	program := filepath.Join(root, "kubectl")
	if err := os.MkdirAll(root, 0o755); err != nil {
		return "", err
	}
	unlock, err := lock(filepath.Join(root, "lock"), progress)
	if err != nil {
		return "", err
	}
	defer unlock() //nolint:errcheck // closing the file cannot leave it locked
	if _, err := os.Stat(program); err == nil {
		return program, nil
	}
	return program, buildKubectl(ctx, root, program, version, progress)
}

// buildKubectl builds the program beside its place, and renames it when it is whole.
func buildKubectl(ctx context.Context, root, program, version string, progress io.Writer) error {
	work, err := os.MkdirTemp(root, "build-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work) //nolint:errcheck // what stays is a temporary folder in a cache
	for name, data := range map[string][]byte{"go.mod": kubectlMod, "go.sum": kubectlSum, "main.go": kubectlMain} {
		if err := os.WriteFile(filepath.Join(work, name), data, 0o644); err != nil {
			return err
		}
	}
	fmt.Fprintf(progress, "building kubectl %s, once: this takes a minute or two\n", version)
	built := filepath.Join(work, "kubectl")
	if err := goBuild(ctx, work, built, ".", buildFlags("v1"+strings.TrimPrefix(version, "v0")), progress); err != nil {
		return fmt.Errorf("building kubectl: %w", err)
	}
	return os.Rename(built, program)
}
