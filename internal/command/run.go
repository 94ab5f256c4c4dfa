package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/internal/exit"
)

// Run runs a program and gives its exit code.
func Run(root *cobra.Command, args []string, in io.Reader, out, errs io.Writer) int {
	written := &Output{Writer: out}
	root.SilenceErrors, root.SilenceUsage = true, true
	root.PersistentPreRunE = CheckChoices
	root.SetArgs(args)
	root.SetIn(in)
	root.SetOut(written)
	root.SetErr(errs)
	root.SetFlagErrorFunc(noSuchFlag)
	offerWords(root)
	if root.HasSubCommands() {
		addCompletion(root)
	}
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
			fmt.Fprintf(errs, "%s: %s\n", root.DisplayName(), diag.Inert(done.Err.Error()))
		}
		return done.Code
	}
	fmt.Fprintf(errs, "%s: %s\nSee '%s --help'.\n", root.DisplayName(), diag.Inert(err.Error()), cmd.CommandPath())
	return exit.CodeUsage
}

// An Output remembers that it could not be written.
type Output struct {
	io.Writer
	err error
}

// Write writes through.
func (o *Output) Write(data []byte) (int, error) {
	n, err := o.Writer.Write(data)
	if err != nil && o.err == nil {
		o.err = err
	}
	return n, err
}

// UntilTold is the context of a command, until the user or the system tells it to end.
func UntilTold(cmd *cobra.Command) (context.Context, context.CancelFunc) {
	return signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
}

// Typed is the verb as it is typed, without the program.
func Typed(cmd *cobra.Command) string {
	return strings.TrimPrefix(cmd.CommandPath(), cmd.Root().CommandPath()+" ")
}

// NoArgument refuses words behind a command that takes none.
func NoArgument(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	return fmt.Errorf("%s takes no argument, and got %q", Typed(cmd), args[0])
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
