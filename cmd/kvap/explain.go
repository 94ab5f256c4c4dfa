package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/kvap/kvap/diag"
)

func newExplain() *cobra.Command {
	return &cobra.Command{
		Use:     "explain [CODE]",
		Short:   "Say what a diagnostic means, with an example and the way out",
		Long:    "Explain says what a diagnostic means, with an example and the way out.\nWithout a code it lists them all.",
		Example: "  kvap explain KV201",
		Args:    cobra.MaximumNArgs(1),
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			if len(args) > 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return codeNames(), cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				_, err := fmt.Fprintln(cmd.OutOrStdout(), strings.Join(codeNames(), "\n"))
				return err
			}
			text, err := explain(args[0])
			if err != nil {
				return err
			}
			_, err = fmt.Fprint(cmd.OutOrStdout(), text)
			return err
		},
	}
}

func explain(name string) (string, error) {
	code, ok := diag.ParseCode(name)
	if !ok {
		return "", fmt.Errorf("there is no code %q; kvap explain lists all", name)
	}
	text, _ := diag.Explain(code)
	return text, nil
}

func codeNames() []string {
	var names []string
	for _, c := range diag.Codes() {
		names = append(names, c.String())
	}
	return names
}
