package kyverno

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

	"github.com/kvap/kvap/test/controlplane"
)

// moduleMod is the go.mod of the module that Kyverno is built from.
//
//go:embed module/mod
var moduleMod []byte

// moduleSum is its go.sum.
//
//go:embed module/sum
var moduleSum []byte

// BinariesVariable is the environment variable that names a folder of binaries.
const BinariesVariable = "KVAP_KYVERNO"

// source is the module that has Kyverno.
const source = "github.com/kyverno/kyverno"

// The programs, and the folder of the definitions beside them.
const (
	admissionController  = "kyverno"
	backgroundController = "background-controller"
	definitionsFolder    = "crds"
)

// Version is the version of Kyverno that is built, for instance v1.19.0.
func Version() string {
	return string(regexp.MustCompile(`(?m)^\s` + source + ` (v\S+)`).FindSubmatch(moduleMod)[1])
}

// Build returns a folder with the binaries and the definitions: the one that KVAP_KYVERNO
// names, or one in the user's cache, which it fills first if need be.
func Build(ctx context.Context, progress io.Writer) (string, error) {
	return controlplane.Module{
		Name: "kyverno", Title: "Kyverno", Version: Version(), Mod: moduleMod, Sum: moduleSum, Variable: BinariesVariable,
		Programs: map[string]string{
			admissionController:  source + "/cmd/kyverno",
			backgroundController: source + "/cmd/background-controller",
		},
		Flags:  []string{"-p=1", "-trimpath", "-buildvcs=false", "-mod=readonly", "-ldflags=-s -w"},
		Beside: copyDefinitions, Files: []string{definitionsFolder},
	}.Build(ctx, progress)
}

// copyDefinitions puts the definitions of the module beside the programs.
func copyDefinitions(ctx context.Context, module, programs string) error {
	list := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", source)
	list.Dir = module
	list.Env = append(os.Environ(), "GOFLAGS=", "GOWORK=off", "PWD="+module)
	dir, err := list.Output()
	if err != nil {
		return fmt.Errorf("where %s is: %w", source, err)
	}
	files, err := filepath.Glob(filepath.Join(strings.TrimSpace(string(dir)), "config", "crds", "*", "*.yaml"))
	if err != nil {
		return err
	}
	to := filepath.Join(programs, definitionsFolder)
	if err := os.Mkdir(to, 0o755); err != nil {
		return err
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(to, filepath.Base(file)), data, 0o644); err != nil {
			return err
		}
	}
	return nil
}
