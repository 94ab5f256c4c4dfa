package main

import "github.com/spf13/cobra"

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
