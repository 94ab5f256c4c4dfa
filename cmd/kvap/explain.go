package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/internal/exit"
)

func newExplain() *cobra.Command {
	return &cobra.Command{
		Use:     "explain [CODE...]",
		Short:   "Say what a diagnostic means, with an example and the way out",
		Long:    "Explain says what diagnostics mean, each with an example and the way out.\nWithout a code it lists them all.",
		Example: "  kvap explain KV201",
		ValidArgsFunction: func(_ *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
			var names []string // with their titles, as shells show them
			for _, c := range diag.Codes() {
				_, when := diag.Title(c)
				names = append(names, c.String()+"\t"+when)
			}
			return names, cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return exit.Runtime(writeTitles(cmd.OutOrStdout()))
			}
			var texts []string
			for _, name := range args {
				code, ok := diag.ParseCode(name)
				if !ok {
					return fmt.Errorf("there is no code %q; kvap explain lists all", name)
				}
				text, _ := diag.Explain(code)
				texts = append(texts, text)
			}
			_, err := io.WriteString(cmd.OutOrStdout(), strings.Join(texts, "\n"))
			return exit.Runtime(err)
		},
	}
}

// writeTitles lists the codes, by their hundreds.
func writeTitles(w io.Writer) error {
	heads := map[diag.Code]string{
		1: "reading", 2: "no native form: the webhook judges the rule", 3: "native, but different in a way to know", 4: "checks of the objects", 5: "in the cluster",
	}
	width := 0
	for _, c := range diag.Codes() {
		name, _ := diag.Title(c)
		width = max(width, len(name))
	}
	var b strings.Builder
	hundred := diag.Code(0)
	for _, c := range diag.Codes() {
		if c/100 != hundred {
			if hundred != 0 {
				b.WriteByte('\n')
			}
			hundred = c / 100
			fmt.Fprintf(&b, "%dxx: %s\n", hundred, heads[hundred])
		}
		name, when := diag.Title(c)
		fmt.Fprintf(&b, "  %s  %-*s %s\n", c, width, name, when)
	}
	_, err := io.WriteString(w, b.String())
	return err
}
