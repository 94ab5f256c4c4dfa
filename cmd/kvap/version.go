package main

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/internal/command"
	"github.com/kvap/kvap/internal/exit"
	"github.com/kvap/kvap/report/doc"
	"github.com/kvap/kvap/schema"
)

// A versionInfo is what version says of the program, as JSON says it.
type versionInfo struct {
	Version    string   `json:"version"`
	Revision   string   `json:"revision,omitempty"`
	GoVersion  string   `json:"goVersion"`
	Platform   string   `json:"platform"`
	Kubernetes []string `json:"kubernetes"` // the releases that can be compiled for
	CELGo      string   `json:"celGo"`
	// CustomKinds are known without their definitions; they are many, and only there where
	// they are asked for.
	CustomKinds []customKind `json:"customKinds,omitempty"`
}

// A customKind is a kind as a project publishes it.
type customKind struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Project    string `json:"project"`
	Version    string `json:"version"`
	License    string `json:"license"`
}

func newVersion() *cobra.Command {
	var output string
	var kinds bool
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print the version, and the Kubernetes releases that kvap compiles for",
		Args:  command.NoArgument,
		RunE: func(cmd *cobra.Command, _ []string) error {
			v := version()
			switch output {
			case "json":
				if kinds {
					v.CustomKinds = customKinds()
				}
				return doc.WriteJSON(cmd.OutOrStdout(), v)
			case "":
				_, err := fmt.Fprintln(cmd.OutOrStdout(), v)
				return exit.Runtime(err)
			}
			return fmt.Errorf("-o %s: version knows json only", output)
		},
	}
	cmd.Flags().StringVarP(&output, "output", "o", "", "output format: json")
	command.Offer(cmd.Flags(), "output", "json")
	cmd.Flags().BoolVar(&kinds, "custom-kinds", false, "with -o json, the custom kinds too that kvap knows without their definitions")
	return cmd
}

func customKinds() (out []customKind) {
	for _, r := range schema.Published() {
		out = append(out, customKind{r.APIVersion(), r.Kind, r.Project.Name, r.Project.Version, r.Project.License})
	}
	return out
}

// String is the version in a line.
func (v versionInfo) String() string {
	return fmt.Sprintf("kvap %s (%s, %s), for Kubernetes %s to %s", v.Version, v.GoVersion, v.Platform, v.Kubernetes[0], v.Kubernetes[len(v.Kubernetes)-1])
}

func version() versionInfo {
	v := versionInfo{Version: command.Version(), GoVersion: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	for _, r := range cel.Supported() {
		v.Kubernetes = append(v.Kubernetes, r.String())
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return v
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			v.Revision = s.Value
		}
	}
	for _, m := range info.Deps {
		if m.Path == "github.com/google/cel-go" {
			v.CELGo = m.Version
		}
	}
	return v
}
