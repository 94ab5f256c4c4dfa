package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"github.com/kvap/kvap/api/v1alpha1"
	"github.com/kvap/kvap/internal/exit"
	"github.com/kvap/kvap/internal/folder"
	"github.com/kvap/kvap/internal/input"
	"github.com/kvap/kvap/migrate"
	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/report"
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
	out := report.Handover{Verb: migrate.Adopt, Folder: f.outputDir}
	if f.dryRun != "none" {
		out.Dry = f.dryRun
	}
	changed := map[string][]byte{} // by where it is written
	already := 0
	for _, s := range sources {
		adopted, err := migrate.AdoptFile(s.Name, s.Data)
		if err != nil {
			return exit.Usage(err)
		}
		already += len(adopted.Already)
		out.Policies = append(out.Policies, adoptedOf(s.Name, adopted)...)
		if !bytes.Equal(adopted.Data, s.Data) || f.outputDir != "" && len(adopted.Policies) > 0 {
			changed[f.adoptedName(s)] = adopted.Data
		}
	}
	if len(out.Policies)+already == 0 {
		return noPolicyToMove(f.files, "")
	}
	if out.Dry == "" && f.outputDir == "" {
		if err := f.ask(cmd, v, out); err != nil {
			return err
		}
	}
	if out.Dry == "" {
		if err := f.writeAdopted(changed, sources); err != nil {
			return exit.Runtime(err)
		}
	}
	if err := writeAs(cmd.OutOrStdout(), f.output, out); err != nil {
		return exit.Runtime(err)
	}
	return handoverVerdict(out)
}

// adoptedOf says what became of the policies of a file.
func adoptedOf(file string, a migrate.Adoption) (out []report.HandedOverPolicy) {
	row := func(p *policy.Policy) report.HandedOverPolicy {
		one := report.HandedOverPolicy{Kind: p.Kind, Name: p.Name, From: "file", To: "file"}
		if p.Namespaced() {
			one.Namespace = p.Namespace
		}
		return one
	}
	for _, p := range a.Policies {
		one := row(p)
		one.To = string(v1alpha1.StageAdopted)
		one.Moves = []report.HandoverMove{{Does: "apiVersion: " + v1alpha1.GroupVersion().String() + " in " + file}}
		out = append(out, one)
	}
	for _, p := range a.Left {
		one := row(p)
		one.Left = "kvap.dev has no kind that it could become; it stays as it is"
		out = append(out, one)
	}
	return out
}

// adoptedName is where an adopted file is written.
func (f changeFlags) adoptedName(s input.Source) string {
	if f.outputDir != "" {
		return filepath.ToSlash(s.Below)
	}
	return s.Name
}

// writeAdopted writes files where they were, or into the folder.
func (f changeFlags) writeAdopted(changed map[string][]byte, sources []input.Source) error {
	if f.outputDir == "" {
		for name, data := range changed {
			info, err := os.Stat(name)
			if err != nil {
				return input.PathError(err)
			}
			if err := os.WriteFile(name, data, info.Mode().Perm()); err != nil {
				return input.PathError(err)
			}
		}
		return nil
	}
	to, err := folder.Open(f.outputDir, sources)
	if err != nil {
		return err
	}
	defer to.Close()
	for name, data := range changed {
		to.Add(name, data)
	}
	if _, err := to.Write(f.force); err != nil {
		return err
	}
	return to.Finish()
}
