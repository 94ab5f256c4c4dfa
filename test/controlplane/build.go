package controlplane

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

// modules has the go.mod and go.sum of a module for each version of Kubernetes, which
// the servers are built from.
//
//go:embed servers
var modules embed.FS

// BinariesVariable is the environment variable that names a folder of binaries.
const BinariesVariable = "KVAP_CONTROLPLANE"

// VersionVariable is the environment variable that names a version of Kubernetes, one of
// Versions, to take instead of the standard one.
const VersionVariable = "KVAP_KUBERNETES"

// standard is the version that runs where nobody names another.
const standard = "1.36.3"

// servers are the names of the binaries, with the packages that they are built from.
func servers() map[string]string {
	return map[string]string{
		"etcd":            "go.etcd.io/etcd/server/v3",
		apiServer:         "k8s.io/kubernetes/cmd/kube-apiserver",
		controllerManager: "k8s.io/kubernetes/cmd/kube-controller-manager",
	}
}

// Version is the version of Kubernetes that runs, for instance v1.36.3.
func Version() string { return "v" + chosen() }

func chosen() string { return cmp.Or(os.Getenv(VersionVariable), standard) }

// Versions are those that can be built, for instance 1.36.3, the oldest first.
func Versions() []string {
	folders, err := modules.ReadDir("servers")
	if err != nil {
		panic(err) // it is embedded
	}
	var out []string
	for _, f := range folders {
		out = append(out, f.Name())
	}
	return out
}

// Build returns a folder with the binaries: the one that KVAP_CONTROLPLANE names,
// or one in the user's cache, which it fills first if need be.
func Build(ctx context.Context, progress io.Writer) (string, error) {
	m, missing, err := module(chosen())
	if err != nil {
		return "", err
	}
	if len(missing) > 0 {
		of, _, err := module(standard)
		if err != nil {
			return "", err
		}
		folder, err := of.Build(ctx, progress)
		if err != nil {
			return "", err
		}
		m.Files = missing
		m.Beside = func(_ context.Context, _, programs string) error { return link(missing, folder, programs) }
	}
	return m.Build(ctx, progress)
}

// module is what the servers of a version are built from. Those that are missing, as its
// go.mod does not have them as tools, are to be taken from the standard version.
func module(version string) (m Module, missing []string, err error) {
	mod, err := modules.ReadFile(path.Join("servers", version, "mod"))
	if err != nil {
		return m, nil, fmt.Errorf("%s: Kubernetes %s cannot be built, but %s can", VersionVariable, version, strings.Join(Versions(), ", "))
	}
	sum, err := modules.ReadFile(path.Join("servers", version, "sum"))
	if err != nil {
		return m, nil, err
	}
	programs := servers()
	for name, pkg := range programs {
		if !regexp.MustCompile(`(?m)^(\t|tool )` + regexp.QuoteMeta(pkg) + `$`).Match(mod) {
			missing = append(missing, name)
			delete(programs, name)
		}
	}
	return Module{
		Name: "controlplane", Title: "the control plane of Kubernetes", Version: "v" + version, Mod: mod, Sum: sum,
		Programs: programs, Flags: buildFlags("v" + version), Variable: BinariesVariable,
	}, missing, nil
}

// link puts programs of one folder into another; they stay there when the first is removed.
func link(programs []string, from, to string) error {
	for _, name := range programs {
		if err := os.Link(filepath.Join(from, name), filepath.Join(to, name)); err != nil {
			return err
		}
	}
	return nil
}

// buildFlags stamp the version, without which clients cannot parse what the
// server says of itself. Paths stay in the programs, so that what kvap's own programs link
// too is in the build cache.
func buildFlags(version string) []string {
	const stamp = "k8s.io/component-base/version."
	major, rest, _ := strings.Cut(strings.TrimPrefix(version, "v"), ".")
	minor, _, _ := strings.Cut(rest, ".")
	return []string{
		"-buildvcs=false", "-mod=readonly",
		"-ldflags=-s -w -X " + stamp + "gitVersion=" + version + " -X " + stamp + "gitMajor=" + major + " -X " + stamp + "gitMinor=" + minor,
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
