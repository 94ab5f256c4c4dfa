package main

import (
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/kvap/kvap/internal/incluster"
)

// addRecursive accepts -R, for those whose fingers are used to it: folders are read
// with all that is in them anyway.
func addRecursive(fs *pflag.FlagSet) {
	fs.BoolP("recursive", "R", true, "accepted, and always so: folders are read with all that is in them")
}

// completeWords makes shells offer the words that flags may be.
func completeWords(cmd *cobra.Command) {
	for name, list := range map[string][]string{
		"pack": packs(), "params": paramsKinds(), "existing-violations": existings(), "operations": operationChoices(),
		"action": actionChoices(), "guard": guards(), "kubernetes-version": releases(),
		"reports": reportChoices(), "cleanup": words(incluster.Cleanings()...), "report-format": reportFormats(), "fail-on": failOns(), "operation": {"CREATE", "UPDATE", "DELETE"},
	} {
		if cmd.Flags().Lookup(name) != nil {
			// It fails only for a flag that is not there, or done twice.
			_ = cmd.RegisterFlagCompletionFunc(name, cobra.FixedCompletions(list, cobra.ShellCompDirectiveNoFileComp))
		}
	}
}

// completeOutput makes shells offer the formats of -o, and folders where it takes one.
func completeOutput(cmd *cobra.Command, folders bool, formats ...string) {
	directive := cobra.ShellCompDirectiveNoFileComp
	if folders {
		directive = cobra.ShellCompDirectiveDefault
	}
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(formats, directive)) // as in completeWords
}
