package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/internal/exit"
)

func main() {
	os.Exit(run(os.Args, os.Stdin, os.Stdout, os.Stderr))
}

// run is the whole program as a function of its surroundings.
func run(args []string, in io.Reader, out, errs io.Writer) int {
	root := newRoot(args[0])
	written := &output{Writer: out}
	root.SetArgs(args[1:])
	root.SetIn(in)
	root.SetOut(written)
	root.SetErr(errs)
	addCompletion(root)
	root.SetFlagErrorFunc(noSuchFlag)
	cmd, err := root.ExecuteC()
	if written.err != nil { // which help and the like pass over
		err = exit.Runtime(written.err)
	}
	if err == nil {
		return exit.CodeClean
	}
	var done *exit.Error
	if errors.As(err, &done) {
		if done.Err != nil {
			fmt.Fprintf(errs, "%s: %s\n", displayName(args[0]), diag.Inert(done.Err.Error()))
		}
		return done.Code
	}
	fmt.Fprintf(errs, "%s: %s\nSee '%s --help'.\n", displayName(args[0]), diag.Inert(err.Error()), cmd.CommandPath())
	return exit.CodeUsage
}

// An output remembers that it could not be written.
type output struct {
	io.Writer
	err error
}

// Write writes through.
func (o *output) Write(data []byte) (int, error) {
	n, err := o.Writer.Write(data)
	if err != nil && o.err == nil {
		o.err = err
	}
	return n, err
}

func newRoot(program string) *cobra.Command {
	root := &cobra.Command{
		Use:   "kvap",
		Short: "Turns Kyverno-style policies into native ValidatingAdmissionPolicies",
		Long: `kvap reads Kyverno-style policies and turns every rule that CEL can express into
ValidatingAdmissionPolicies and their bindings, which the API server enforces by
itself, with no webhook. It says which rule went where, and why.`,
		Args:              noSuchVerb,
		PersistentPreRunE: checkChoices,
		SilenceErrors:     true,
		SilenceUsage:      true,
		Annotations:       map[string]string{cobra.CommandDisplayNameAnnotation: displayName(program)},
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
	root.AddCommand(newConvert(), newCheck(), newEval(), newTest(), newVerify(), newDiff(), newStatus(), newMigrate(), newController(), newUninstall(), newDev(), newExplain(), newVersion(), newManual())
	offerWords(root)
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

// noArgument refuses words behind a verb that takes none.
func noArgument(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	return fmt.Errorf("%s takes no argument, and got %q", typed(cmd), args[0])
}

// noSuchFlag says which flag may be meant.
func noSuchFlag(cmd *cobra.Command, err error) error {
	var unknown *pflag.NotExistError
	if !errors.As(err, &unknown) || unknown.GetSpecifiedShortnames() != "" {
		return err
	}
	var known []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden {
			known = append(known, f.Name)
		}
	})
	if near := diag.Nearest(unknown.GetSpecifiedName(), known); near != "" {
		return fmt.Errorf("%w; did you mean --%s?", err, near)
	}
	return err
}

// typed is the verb as it is typed, without the program.
func typed(cmd *cobra.Command) string {
	return strings.TrimPrefix(cmd.CommandPath(), cmd.Root().CommandPath()+" ")
}

// addCompletion adds cobra's own verb, which takes any word for a call for help. It
// writes to what is the output at this time.
func addCompletion(root *cobra.Command) {
	root.InitDefaultCompletionCmd("completion")
	for _, c := range root.Commands() {
		if c.Name() != "completion" {
			continue
		}
		c.Args = func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return nil
			}
			return fmt.Errorf("there is no completion for %q; there is one for bash, fish, powershell and zsh", args[0])
		}
		c.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
	}
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
