package main

import (
	"github.com/spf13/cobra"

	"github.com/kvap/kvap/internal/command"
	"github.com/kvap/kvap/internal/exit"
	"github.com/kvap/kvap/report/doc"
)

func newMigrateFinish() *cobra.Command {
	var f clusterFlags
	var output string
	cmd := &cobra.Command{
		Use:   "finish",
		Short: "Say what is left of Kyverno, and what can be uninstalled",
		Long: `Finish reads the cluster and says which policies still keep Kyverno, which of its
definitions and webhook configurations are there and whose they are, and what to do, in
order. It changes nothing: what to uninstall is up to you.

Exit codes: 0 nothing needs Kyverno any more, 1 something does, 2 usage, 3 no cluster
answers.`,
		Args: command.NoArgument,
		RunE: func(cmd *cobra.Command, _ []string) error {
			reader, err := f.reader(0)
			if err != nil {
				return err
			}
			found, err := reader.Finish(cmd.Context())
			if err == nil {
				err = found.Document().Write(cmd.OutOrStdout(), doc.Options{Format: output})
			}
			if err == nil && !found.Done {
				err = exit.Findings(nil)
			}
			return exit.Runtime(err)
		},
	}
	fs := command.InOrder(cmd)
	command.AddChoice(fs, &output, "output", "table", "table, json or markdown", "table", "json", "markdown")
	f.addConnection(fs)
	return cmd
}
