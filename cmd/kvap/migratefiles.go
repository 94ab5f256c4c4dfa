package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/kvap/kvap/internal/convert"
	"github.com/kvap/kvap/internal/exit"
	"github.com/kvap/kvap/internal/input"
	"github.com/kvap/kvap/migrate"
	"github.com/kvap/kvap/migrate/infiles"
	"github.com/kvap/kvap/report"
)

// compileFiles reads and compiles the policies of -f and -k.
func (f changeFlags) compileFiles(cmd *cobra.Command) (*convert.Compilation, error) {
	sources, unread, err := input.Sources(f.files, f.kustomize, cmd.InOrStdin())
	if err != nil {
		return nil, err
	}
	choices, err := convert.DefaultFlags().Choices()
	if err != nil {
		return nil, err
	}
	done := convert.Compile(sources, choices)
	done.Found = append(done.Found, unread...).Sort()
	if err := (viewFlags{quiet: true}).say(cmd, done.Found, sources); err != nil {
		return nil, err
	}
	if done.Empty() {
		return nil, noPolicyToMove(f.files, f.kustomize)
	}
	return done, nil
}

// noPolicyToMove says that there is nothing to do.
func noPolicyToMove(files []string, kustomize string) error {
	return exit.Usage(fmt.Errorf("there is no policy in %s", input.Names(files, kustomize)))
}

// namesInFiles are the names of the policies of the files that are meant, and what is
// left of the files.
func (f changeFlags) namesInFiles(cmd *cobra.Command, names []string) (out []string, left []report.HandedOverPolicy, err error) {
	done, err := f.compileFiles(cmd)
	if err != nil {
		return nil, nil, err
	}
	if len(done.Policies) == 0 {
		return nil, nil, noPolicyToMove(f.files, f.kustomize)
	}
	choice := infiles.Choice{Names: names, Selector: f.selector}
	chosen, err := choice.Of(done.Policies)
	for _, p := range chosen {
		out = append(out, p.FullName())
	}
	return out, choice.LeftUnread(done), err
}

// runOffline writes what would be done to the policies of files, and asks no cluster.
func (f changeFlags) runOffline(cmd *cobra.Command, goal migrate.Goal, names []string) error {
	if f.dryRun == "server" {
		return errors.New("--dry-run=server asks a cluster, and with -f and --output-dir none is asked")
	}
	done, err := f.compileFiles(cmd)
	if err != nil {
		return err
	}
	out, components, err := infiles.Steps(done, goal, infiles.Choice{Names: names, Selector: f.selector})
	if err != nil {
		return err
	}
	out.Folder = f.outputDir
	if f.dryRun != "none" {
		out.Dry = f.dryRun
	} else if err := infiles.WriteComponents(f.outputDir, components, f.force); err != nil {
		return exit.Runtime(err)
	}
	if err := writeAs(cmd.OutOrStdout(), f.output, out); err != nil {
		return exit.Runtime(err)
	}
	if done.Found.HasErrors() {
		return exit.Partly(nil)
	}
	return handoverVerdict(out)
}
