package controlplane

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"
)

// A Module is a Go module of which programs are built once, and kept in the user's cache.
type Module struct {
	// Name is that of its folder in the cache, and Title what it is called while it is built.
	Name, Title string
	Version     string
	// Mod and Sum are its go.mod and go.sum.
	Mod, Sum []byte
	// Programs are the packages that are built, by the names of the programs.
	Programs map[string]string
	Flags    []string
	// Variable is the environment variable that names a folder of programs, which spares
	// the build.
	Variable string
	// Beside has more put beside the programs, by somebody who runs the go command in the
	// folder of the module; nil for nothing. What it makes is named by Files.
	Beside func(ctx context.Context, module, programs string) error
	Files  []string
}

// Build returns a folder with the programs: the one that the variable names, or one in
// the user's cache, which it fills first if need be.
func (m Module) Build(ctx context.Context, progress io.Writer) (string, error) {
	if given := os.Getenv(m.Variable); given != "" {
		if err := m.complete(given); err != nil {
			return "", fmt.Errorf("%s: %w", m.Variable, err)
		}
		return filepath.Abs(given)
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	root := filepath.Join(cache, "kvap", m.Name)
	folder := filepath.Join(root, m.key())
	if m.complete(folder) == nil {
		return folder, nil
	}
	if err := os.MkdirAll(root, 0o755); err != nil {
		return "", err
	}
	unlock, err := lock(filepath.Join(root, "lock"), progress)
	if err != nil {
		return "", err
	}
	defer unlock() //nolint:errcheck // closing the file cannot leave it locked
	if m.complete(folder) == nil {
		return folder, nil // somebody else has built while we waited
	}
	return folder, m.build(ctx, root, folder, progress)
}

// key names what is built: the version, and all else that the programs depend on.
func (m Module) key() string {
	sum := sha256.New()
	for _, part := range [][]byte{m.Mod, m.Sum, []byte(strings.Join(m.Flags, " ")), []byte(runtime.GOOS + "/" + runtime.GOARCH)} {
		sum.Write(part)
		sum.Write([]byte{0})
	}
	return fmt.Sprintf("%s-%.4x", m.Version, sum.Sum(nil))
}

// complete tells what a folder of programs lacks.
func (m Module) complete(folder string) error {
	for name := range m.Programs {
		info, err := os.Stat(filepath.Join(folder, name))
		if err != nil {
			return err
		}
		if info.IsDir() || info.Mode()&0o111 == 0 {
			return fmt.Errorf("%s is no program", filepath.Join(folder, name))
		}
	}
	for _, name := range m.Files {
		if _, err := os.Stat(filepath.Join(folder, name)); err != nil {
			return err
		}
	}
	return nil
}

// build makes the programs in a folder beside the one where they belong, and
// renames it when all are there.
func (m Module) build(ctx context.Context, root, folder string, progress io.Writer) error {
	work, err := os.MkdirTemp(root, "build-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work) //nolint:errcheck // what stays is a temporary folder in a cache
	for name, data := range map[string][]byte{"go.mod": m.Mod, "go.sum": m.Sum} {
		if err := os.WriteFile(filepath.Join(work, name), data, 0o644); err != nil {
			return err
		}
	}
	fmt.Fprintf(progress, "building %s %s, once: this takes several minutes\n", m.Title, m.Version)
	began := time.Now()
	bin := filepath.Join(work, "bin")
	if err := os.Mkdir(bin, 0o755); err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(m.Programs)) {
		if err := goBuild(ctx, work, filepath.Join(bin, name), m.Programs[name], m.Flags, progress); err != nil {
			return fmt.Errorf("building %s: %w", name, err)
		}
	}
	if m.Beside != nil {
		if err := m.Beside(ctx, work, bin); err != nil {
			return err
		}
	}
	fmt.Fprintf(progress, "built %s in %s\n", folder, time.Since(began).Round(time.Second))
	if err := os.RemoveAll(folder); err != nil { // an incomplete one
		return err
	}
	return os.Rename(bin, folder)
}
