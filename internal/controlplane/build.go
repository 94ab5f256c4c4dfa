package controlplane

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
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
	if given := os.Getenv(BinariesVariable); given != "" {
		if err := complete(given); err != nil {
			return "", fmt.Errorf("%s: %w", BinariesVariable, err)
		}
		return filepath.Abs(given)
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	root := filepath.Join(cache, "kvap", "controlplane")
	folder := filepath.Join(root, buildKey())
	if complete(folder) == nil {
		return folder, nil
	}
	if err := os.MkdirAll(root, 0o755); err != nil {
		return "", err
	}
	unlock, err := lock(filepath.Join(root, "lock"))
	if err != nil {
		return "", err
	}
	defer unlock() //nolint:errcheck // closing the file cannot leave it locked
	if complete(folder) == nil {
		return folder, nil // somebody else has built while we waited
	}
	return folder, build(ctx, root, folder, progress)
}

// buildKey names what is built: the version, and all else that the binaries
// depend on.
func buildKey() string {
	sum := sha256.New()
	for _, part := range [][]byte{serversMod, serversSum, []byte(strings.Join(buildFlags(), " ")), []byte(runtime.GOOS + "/" + runtime.GOARCH)} {
		sum.Write(part)
		sum.Write([]byte{0})
	}
	return fmt.Sprintf("%s-%.4x", Version(), sum.Sum(nil))
}

// complete tells what a folder of binaries lacks.
func complete(folder string) error {
	for name := range servers() {
		info, err := os.Stat(filepath.Join(folder, name))
		if err != nil {
			return err
		}
		if info.IsDir() || info.Mode()&0o111 == 0 {
			return fmt.Errorf("%s is no program", filepath.Join(folder, name))
		}
	}
	return nil
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

// build makes the binaries in a folder beside the one where they belong, and
// renames it when all are there.
func build(ctx context.Context, root, folder string, progress io.Writer) error {
	work, err := os.MkdirTemp(root, "build-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work) //nolint:errcheck // what stays is a temporary folder in a cache
	for name, data := range map[string][]byte{"go.mod": serversMod, "go.sum": serversSum} {
		if err := os.WriteFile(filepath.Join(work, name), data, 0o644); err != nil {
			return err
		}
	}
	fmt.Fprintf(progress, "building the control plane of Kubernetes %s, once: this takes several minutes\n", Version())
	began := time.Now()
	bin := filepath.Join(work, "bin")
	if err := os.Mkdir(bin, 0o755); err != nil {
		return err
	}
	for _, name := range []string{"etcd", "kube-apiserver", controllerManager} {
		if err := goBuild(ctx, work, filepath.Join(bin, name), servers()[name], progress); err != nil {
			return fmt.Errorf("building %s: %w", name, err)
		}
	}
	fmt.Fprintf(progress, "built %s in %s\n", folder, time.Since(began).Round(time.Second))
	if err := os.RemoveAll(folder); err != nil { // an incomplete one
		return err
	}
	return os.Rename(bin, folder)
}

// goBuild runs the go command, which names each package when it is compiled.
func goBuild(ctx context.Context, dir, out, pkg string, progress io.Writer) error {
	args := append([]string{"build", "-v", "-o", out}, buildFlags()...)
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
