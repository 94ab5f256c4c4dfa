package main

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/kvap/kvap/cmd/kvap/internal/convert"
	"github.com/kvap/kvap/cmd/kvap/internal/follow"
	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/internal/command"
	"github.com/kvap/kvap/internal/exit"
	"github.com/kvap/kvap/internal/input"
	"github.com/kvap/kvap/report/doc"
)

func newExplain() *cobra.Command {
	var output, file string
	cmd := &cobra.Command{
		Use:   "explain [CODE|NAME...]",
		Short: "Say what a diagnostic means, with an example and the way out",
		Long: "Explain says what diagnostics mean, each with an example and the way out.\nWithout a code it lists them all.\n\n" +
			"With -f it says how the rules of a file become CEL, step by step, as docs/core.md does.",
		Example: "  kvap explain KV201\n  kvap explain NoExpression\n  kvap explain -o json\n  kvap explain -f policy.yaml",
		ValidArgsFunction: func(_ *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
			var names []string // with their titles, as shells show them
			for _, c := range diag.Codes() {
				_, when := diag.Title(c)
				names = append(names, c.String()+"\t"+when)
			}
			return names, cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if file != "" {
				if len(args) > 0 || output == "json" {
					return errors.New("-f follows the rules of a file, and takes no code and no -o json")
				}
				return followFile(cmd, file)
			}
			codes, err := codesOf(args)
			switch {
			case err != nil:
				return err
			case output == "json":
				return exit.Runtime(writeExplained(cmd.OutOrStdout(), codes))
			case len(args) == 0:
				return exit.Runtime(writeTitles(cmd.OutOrStdout()))
			}
			var texts []string
			for _, code := range codes {
				text, _ := diag.Explain(code)
				texts = append(texts, text)
			}
			_, err = io.WriteString(cmd.OutOrStdout(), strings.Join(texts, "\n"))
			return exit.Runtime(err)
		},
	}
	cmd.Flags().StringVarP(&file, "filename", "f", "", "a file or a folder of policies whose rules are followed, - for standard input")
	command.AddChoice(cmd.Flags(), &output, "output", "text", "output format: text or json", "text", "json")
	return cmd
}

// followFile says how the rules of a file become CEL.
func followFile(cmd *cobra.Command, file string) error {
	sources, found, err := input.Sources([]string{file}, "", cmd.InOrStdin())
	if err != nil {
		return err
	}
	policies := 0
	for _, s := range sources {
		n, of, err := follow.Rules(cmd.OutOrStdout(), s.Name, s.Data)
		if err != nil {
			return exit.Runtime(err)
		}
		policies, found = policies+n, append(found, of...)
	}
	if err := (viewFlags{}).say(cmd, found, sources); err != nil {
		return err
	}
	if policies == 0 || found.HasErrors() {
		return convert.NoPolicy([]string{file}, "", found, true)
	}
	return nil
}

// codesOf are the codes of some words; all without one.
func codesOf(args []string) ([]diag.Code, error) {
	if len(args) == 0 {
		return diag.Codes(), nil
	}
	var out []diag.Code
	for _, word := range args {
		code, ok := diag.ParseCode(word)
		if !ok {
			var names []string
			for _, c := range diag.Codes() {
				name, _ := diag.Title(c)
				names = append(names, name)
			}
			if near := diag.Nearest(word, names); near != "" {
				return nil, fmt.Errorf("there is no code %q; did you mean %s? kvap explain lists all", word, near)
			}
			return nil, fmt.Errorf("there is no code %q; kvap explain lists all", word)
		}
		out = append(out, code)
	}
	return out, nil
}

// An explainedCode is what explain says of a code, as JSON says it.
type explainedCode struct {
	Code   diag.Code `json:"code"`
	Name   string    `json:"name"`
	When   string    `json:"when"`
	Remedy string    `json:"remedy"`
	Text   string    `json:"text"` // all of it, with the example
	URL    string    `json:"url"`
}

func writeExplained(w io.Writer, codes []diag.Code) error {
	var out []explainedCode
	for _, c := range codes {
		name, when := diag.Title(c)
		text, _ := diag.Explain(c)
		out = append(out, explainedCode{c, name, when, diag.Remedy(c), text, diag.Docs + "codes.md#" + strings.ToLower(c.String())})
	}
	return doc.WriteJSON(w, out)
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
