package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
)

func main() {
	os.Exit(run(os.Args, os.Stdin, os.Stdout, os.Stderr))
}

// run is the whole program as a function of its surroundings.
func run(args []string, in io.Reader, out, errs io.Writer) int {
	root := newRoot(args[0])
	root.SetArgs(args[1:])
	root.SetIn(in)
	root.SetOut(out)
	root.SetErr(errs)
	cmd, err := root.ExecuteC()
	if err == nil {
		return exitClean
	}
	var done *exit
	if errors.As(err, &done) {
		if done.err != nil {
			fmt.Fprintf(errs, "%s: %v\n", displayName(args[0]), done.err)
		}
		return done.code
	}
	fmt.Fprintf(errs, "%s: %v\nSee '%s --help'.\n", displayName(args[0]), err, cmd.CommandPath())
	return exitUsage
}

func newRoot(program string) *cobra.Command {
	root := &cobra.Command{
		Use:   "kvap",
		Short: "Turns Kyverno-style policies into native ValidatingAdmissionPolicies",
		Long: `kvap reads Kyverno-style policies and turns every rule that CEL can express into
ValidatingAdmissionPolicies and their bindings, which the API server enforces by
itself, with no webhook. It says which rule went where, and why.`,
		Args:          cobra.NoArgs,
		SilenceErrors: true,
		SilenceUsage:  true,
		Annotations:   map[string]string{cobra.CommandDisplayNameAnnotation: displayName(program)},
		Version:       version().Version,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return cmd.Help()
		},
	}
	root.SetVersionTemplate(version().String() + "\n")
	root.AddCommand(newConvert(), newCheck(), newEval(), newTest(), newVerify(), newStatus(), newExplain(), newVersion())
	return root
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
