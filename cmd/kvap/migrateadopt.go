package main

import (
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/kvap/kvap/internal/exit"
	"github.com/kvap/kvap/internal/input"
	"github.com/kvap/kvap/migrate"
	"github.com/kvap/kvap/migrate/infiles"
)

func newMigrateAdopt() *cobra.Command {
	return newMigrateChange(changeVerb{
		name: migrate.Adopt, confirm: true, short: "Have policies in kvap's kinds in place of Kyverno's",
		long: `Adopt makes a policy of kvap.dev of each policy that kvap enforces, with the same name
and spec, waits until it is seen to be enforced, and then deletes the one of Kyverno's
kind, which stays in the record. After that, Kyverno's definitions can go.

With -f it changes apiVersion in files, and nothing else in them: comments stay. With
--output-dir the changed files go there.`,
		example: `  kvap migrate adopt --all
  kvap migrate adopt -f policies/ --yes
  kvap migrate adopt -f policies/ --output-dir adopted/`,
	})
}

// adoptFiles changes apiVersion of the policies in files.
func (f changeFlags) adoptFiles(cmd *cobra.Command, v changeVerb, names []string) error {
	if len(names) > 0 || f.selector != "" || f.kustomize != "" || f.dryRun == "server" {
		return fmt.Errorf("migrate adopt -f takes whole files: no names, no -l, no -k and no --dry-run=server")
	}
	if f.outputDir == "" && slices.Contains(f.files, "-") {
		return errors.New("migrate adopt -f - has no file to change; say --output-dir, for the adopted ones")
	}
	sources, unread, err := input.Sources(f.files, "", cmd.InOrStdin())
	if err != nil {
		return err
	}
	if unread.HasErrors() {
		return exit.Usage(unread[0])
	}
	adopted, err := infiles.Adopt(sources, f.outputDir)
	if err != nil {
		return exit.Usage(err)
	}
	out := adopted.Handover
	if f.dryRun != "none" {
		out.Dry = f.dryRun
	}
	if len(out.Policies)+adopted.Already == 0 {
		return noPolicyToMove(f.files, "")
	}
	if out.Dry == "" && f.outputDir == "" {
		if err := f.ask(cmd, v, out); err != nil {
			return err
		}
	}
	if out.Dry == "" {
		if err := adopted.Write(f.force); err != nil {
			return exit.Runtime(err)
		}
	}
	if err := writeAs(cmd.OutOrStdout(), f.output, out); err != nil {
		return exit.Runtime(err)
	}
	return handoverVerdict(out)
}
