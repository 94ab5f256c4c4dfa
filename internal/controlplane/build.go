package controlplane

import (
	"bufio"
	"bytes"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

// serversMod is the go.mod of the module that the servers are built from.
//
//go:embed servers/mod
var serversMod []byte

// serversSum is its go.sum.
//
//go:embed servers/sum
var serversSum []byte

// BinariesVariable is the environment variable that names a folder of binaries.
const BinariesVariable = "KVAP_CONTROLPLANE"

// servers are the names of the binaries, with the packages that they are built from.
func servers() map[string]string {
	return map[string]string{
		"etcd":            "go.etcd.io/etcd/server/v3",
		"kube-apiserver":  "k8s.io/kubernetes/cmd/kube-apiserver",
		controllerManager: "k8s.io/kubernetes/cmd/kube-controller-manager",
	}
}

// Version is the version of Kubernetes that is built, for instance v1.36.3.
func Version() string {
	return string(regexp.MustCompile(`(?m)^\tk8s\.io/kubernetes (v\S+)$`).FindSubmatch(serversMod)[1])
}

// Build returns a folder with the binaries: the one that KVAP_CONTROLPLANE names,
// or one in the user's cache, which it fills first if need be.
func Build(ctx context.Context, progress io.Writer) (string, error) {
	return module().Build(ctx, progress)
}

// module is what the servers are built from.
func module() Module {
	return Module{
		Name: "controlplane", Title: "the control plane of Kubernetes", Version: Version(), Mod: serversMod, Sum: serversSum,
		Programs: servers(), Flags: buildFlags(), Variable: BinariesVariable,
	}
}

// buildFlags stamp the version, without which clients cannot parse what the
// server says of itself.
func buildFlags() []string {
	const stamp = "k8s.io/component-base/version."
	major, rest, _ := strings.Cut(strings.TrimPrefix(Version(), "v"), ".")
	minor, _, _ := strings.Cut(rest, ".")
	return []string{
		"-trimpath", "-buildvcs=false", "-mod=readonly",
		"-ldflags=-s -w -X " + stamp + "gitVersion=" + Version() + " -X " + stamp + "gitMajor=" + major + " -X " + stamp + "gitMinor=" + minor,
	}
}

// goBuild runs the go command, which names each package when it is compiled.
func goBuild(ctx context.Context, dir, out, pkg string, flags []string, progress io.Writer) error {
	args := append([]string{"build", "-v", "-o", out}, flags...)
	cmd := exec.CommandContext(ctx, "go", append(args, pkg)...)
	cmd.Dir = dir
	// The user's settings for other modules must not reach this one. Without C the
	// binaries need no libraries, and no compiler to be built.
	cmd.Env = append(os.Environ(), "GOFLAGS=", "GOWORK=off", "CGO_ENABLED=0", "PWD="+dir)
	names, err := cmd.StderrPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		if errors.Is(err, exec.ErrNotFound) || errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("the Go toolchain is needed; or set %s to a folder of binaries: %w", BinariesVariable, err)
		}
		return err
	}
	last := reportPackages(names, filepath.Base(out), progress)
	if err := cmd.Wait(); err != nil {
		return fmt.Errorf("%w\n%s", err, last)
	}
	return nil
}

// reportPackages says every few seconds how many packages are compiled, and
// returns the last lines, which are the errors if there are any.
func reportPackages(lines io.Reader, name string, progress io.Writer) string {
	const every, kept = 10 * time.Second, 20
	var last [][]byte
	count, said := 0, time.Now()
	for scan := bufio.NewScanner(lines); scan.Scan(); {
		last = append(last, bytes.Clone(scan.Bytes()))
		last = last[max(0, len(last)-kept):]
		count++
		if time.Since(said) > every {
			said = time.Now()
			fmt.Fprintf(progress, "  %s: %d packages compiled\n", name, count)
		}
	}
	return string(bytes.Join(last, []byte("\n")))
}
