package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/internal/command"
)

func main() {
	os.Exit(run(os.Args, os.Stdin, os.Stdout, os.Stderr))
}

// run is the whole program as a function of its surroundings.
func run(args []string, in io.Reader, out, errs io.Writer) int {
	return command.Run(newRoot(args[0]), args[1:], in, out, errs)
}

func newRoot(program string) *cobra.Command {
	root := &cobra.Command{
		Use:   "kvap",
		Short: "Turns Kyverno-style policies into native ValidatingAdmissionPolicies",
		Long: `kvap reads Kyverno-style policies and turns every rule that CEL can express into
ValidatingAdmissionPolicies and their bindings, which the API server enforces by
itself, with no webhook. It says which rule went where, and why.`,
		Args:        noSuchVerb,
		Annotations: map[string]string{cobra.CommandDisplayNameAnnotation: displayName(program)},
	}
	// not cobra's own flag: its template would keep every method of every type in the program
	shown := root.Flags().BoolP("version", "v", false, "version for "+displayName(program))
	root.RunE = func(cmd *cobra.Command, _ []string) error {
		if *shown {
			_, err := fmt.Fprintln(cmd.OutOrStdout(), version())
			return err
		}
		return cmd.Help()
	}
	root.AddCommand(newConvert(), newCheck(), newEval(), newTest(), newVerify(), newDiff(), newStatus(), newMigrate(), newUninstall(), newExplain(), newVersion(), newManual())
	return root
}

// noSuchVerb refuses a word that is no verb, with those that may be meant.
func noSuchVerb(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	ofKyverno := map[string]string{"apply": "eval", "jp": "eval", "lint": "check"}
	if own := ofKyverno[args[0]]; own != "" {
		return fmt.Errorf("there is no verb %q; what it does with Kyverno's command line, %s %s does", args[0], cmd.Root().DisplayName(), own)
	}
	if apart := args[0]; apart == "controller" || apart == "dev" {
		return fmt.Errorf("there is no verb %q; kvap-%s is a program of its own", apart, apart)
	}
	cmd.SuggestionsMinimumDistance = 2
	if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
		return fmt.Errorf("there is no verb %q; did you mean %s?", args[0], strings.Join(near, " or "))
	}
	return fmt.Errorf("there is no verb %q", args[0])
}

// noSuchStep refuses a word that is no verb of a verb.
func noSuchStep(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	var known []string
	for _, c := range cmd.Commands() {
		known = append(known, c.Name())
	}
	if near := diag.Nearest(args[0], known); near != "" {
		return fmt.Errorf("there is no verb %q; did you mean %s %s?", cmd.Name()+" "+args[0], cmd.Name(), near)
	}
	return fmt.Errorf("there is no verb %q", cmd.Name()+" "+args[0])
}

// displayName is how users call the program: kubectl runs a plug-in under a
// name of its own.
func displayName(program string) string {
	name := strings.TrimSuffix(filepath.Base(program), ".exe")
	if name == "kubectl-kvap" {
		return "kubectl kvap"
	}
	return "kvap"
}
