package main

import "github.com/spf13/cobra"

func newMigrate() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "migrate",
		Short: "Move policies off Kyverno's webhook, in steps",
		Long: `Migrate moves policies from Kyverno to native policies, and to kvap's webhook for the
rest. Each step can be watched, and undone; at no moment is a request judged by nobody.

  1. plan      says what each policy becomes, and in which order they go
  2. shadow    has them judged beside Kyverno, without effect
  3. record    keeps a sample of real requests, and
     compare   gathers evidence that both sides say the same
  4. enforce   has kvap enforce them, and then switches Kyverno off for them
  5. finish    says what is left of Kyverno, and what can be uninstalled, and
     adopt     has the policies in kvap's kinds, so that Kyverno's can go

rollback leads back, from wherever a policy is. kvap status says where each policy is.
Teams that keep their policies in a repository have each step as a kustomize component:
--output-dir.`,
		Args: noSuchStep,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newMigratePlan(), newMigrateShadow(), newMigrateRecord(), newMigrateCompare(), newMigrateEnforce(),
		newMigrateRollback(), newMigrateFinish(), newMigrateAdopt())
	return cmd
}
