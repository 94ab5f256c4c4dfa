package main

import (
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/kvap/kvap/compile"
	"github.com/kvap/kvap/migrate"
	"github.com/kvap/kvap/report"
)

func newMigrate() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "migrate",
		Short: "Move policies off Kyverno's webhook, in steps",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newMigratePlan(), newMigrateShadow(), newMigrateRecord(), newMigrateCompare(), newMigrateEnforce(),
		newMigrateRollback(), newMigrateFinish(), newMigrateAdopt())
	return cmd
}

// planFlags are the flags of migrate plan.
type planFlags struct {
	files     []string
	kustomize string
	output    string
	choiceFlags
	verbose, noColor bool
}

func newMigratePlan() *cobra.Command {
	var f planFlags
	cmd := &cobra.Command{
		Use:   "plan PATH...",
		Short: "Say what each policy becomes, and in which order they go",
		Long: `Plan reads policy files and folders, with - for standard input, and says what each
policy becomes: native, mixed (some of its rules need kvap's webhook), webhook or
unsupported; every code with its way out; what will be different on purpose; and in
which waves the policies go, the safest first. It changes nothing.

The choices are those of the controller: rules that match alike share an object.

Exit codes: 0 clean, 2 usage or unreadable input, 3 a runtime error, 4 some of the
input was left out.`,
		Example: `  kvap migrate plan policies/
  kvap migrate plan policies/ -o markdown > change-request.md
  kubectl get clusterpolicies.kyverno.io -o yaml | kvap migrate plan -`,
		RunE: func(cmd *cobra.Command, args []string) error {
			return runMigratePlan(cmd, slices.Concat(args, f.files), f)
		},
	}
	fs := cmd.Flags()
	fs.SortFlags = false
	fs.StringSliceVarP(&f.files, "filename", "f", nil, "a file or folder to read, as if it were a PATH")
	fs.StringVarP(&f.kustomize, "kustomize", "k", "", "a kustomize folder to render and read")
	fs.StringVarP(&f.output, "output", "o", "table", "table, json or markdown")
	f.choiceFlags.add(fs)
	fs.Lookup("pack").DefValue, f.pack = "match", "match"
	fs.BoolVarP(&f.verbose, "verbose", "v", false, "all diagnostics, with their places; else only errors")
	fs.BoolVar(&f.noColor, "no-color", false, "no colours on a terminal; NO_COLOR does the same")
	addRecursive(fs)
	completeWords(cmd)
	completeOutput(cmd, false, "table", "json", "markdown")
	return cmd
}

func runMigratePlan(cmd *cobra.Command, paths []string, f planFlags) error {
	if _, err := oneOf("-o", f.output, "table", "json", "markdown"); err != nil {
		return err
	}
	choices, err := f.choices()
	if err != nil {
		return err
	}
	if len(paths) == 0 && f.kustomize == "" {
		return errors.New("migrate plan needs a PATH: a file, a folder, or - for standard input")
	}
	sources, unread, err := readSources(paths, f.kustomize, cmd.InOrStdin())
	if err != nil {
		return err
	}
	progress := newProgress(cmd.ErrOrStderr(), false)
	var done *compilation
	progress.during(fmt.Sprintf("converting %s", count(len(sources), "file", "files")), func() { done = compileSources(sources, choices) })
	progress.clear()
	done.found = append(done.found, unread...).Sort()
	words := convertFlags{quiet: !f.verbose, verbose: f.verbose, noColor: f.noColor}
	if err := words.printDiagnostics(cmd.ErrOrStderr(), done.found, sources, cmd.Root().DisplayName()); err != nil {
		return runtimeError(err)
	}
	if len(done.policies) == 0 {
		return noPolicy(paths, f.kustomize, done.found)
	}
	plan := migrate.MakePlan(compile.Result{Policies: done.policies, Rules: done.rules, Objects: done.objects})
	if err := writePlan(cmd, plan, f); err != nil {
		return runtimeError(err)
	}
	if done.found.HasErrors() {
		return &exit{code: exitPartly}
	}
	return nil
}

func writePlan(cmd *cobra.Command, plan report.Plan, f planFlags) error {
	switch f.output {
	case "json":
		return plan.WriteJSON(cmd.OutOrStdout())
	case "markdown":
		return plan.WriteMarkdown(cmd.OutOrStdout())
	}
	return plan.WriteTable(inColour(cmd.OutOrStdout(), f.noColor))
}
