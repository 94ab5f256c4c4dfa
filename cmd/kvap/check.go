package main

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/check"
	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/report"
	"github.com/kvap/kvap/schema"
)

// checkFlags are the flags of check as the user gave them.
type checkFlags struct {
	files     []string
	kustomize string
	output    string
	failOn    string
	releases  []string
	sizes     map[string]int
	only      []string
	empty     bool
	choiceFlags

	quiet, verbose, noColor bool
}

func newCheck() *cobra.Command {
	var f checkFlags
	cmd := &cobra.Command{
		Use:   "check PATH...",
		Short: "Check types, cost and traps of admission policies, before a cluster sees them",
		Long: `Check reads files and folders, with - for standard input, and looks at every
ValidatingAdmissionPolicy, MutatingAdmissionPolicy and binding: those that somebody
wrote, and those that Kyverno-style policies among the input are converted to.

Every expression is checked against the types that values really have, for all kinds
that the policy matches and for each release asked for. What kube-controller-manager
will write into the policy's status is predicted, and its false alarms are told.

Exit codes: 0 clean, 1 findings as grave as --fail-on says, 2 usage or unreadable
input, 3 a runtime error, 4 some of the input was left out.`,
		Example: `  kvap check policies/
  kvap check vap.yaml --kubernetes-version 1.30 --kubernetes-version 1.36
  kvap check policies/ -o json --fail-on warning`,
		RunE: func(cmd *cobra.Command, args []string) error { return runCheck(cmd, args, f) },
	}
	fs := cmd.Flags()
	fs.SortFlags = false
	fs.StringSliceVarP(&f.files, "filename", "f", nil, "a file or folder to read, as if it were a PATH")
	fs.StringVarP(&f.kustomize, "kustomize", "k", "", "a kustomize folder to render and read")
	fs.StringVarP(&f.output, "output", "o", "text", "output format: text, wide, json, sarif, junit, markdown, github or html")
	fs.StringVar(&f.failOn, "fail-on", "error", "what makes the exit code 1: error, warning or note")
	fs.StringSliceVar(&f.releases, "kubernetes-version", []string{cel.Default.String()}, "a Kubernetes release to check for; may be given several times")
	fs.StringSliceVar(&f.only, "only", nil, "what to look at: types, cost or lint; all of them by default")
	fs.StringToIntVar(&f.sizes, "size", nil, "how large a field is assumed to be, by its name or path: containers=50,object.metadata.labels=20")
	fs.BoolVar(&f.empty, "allow-empty", false, "it is no error where there is nothing to check")
	f.addShared(fs)
	fs.BoolVarP(&f.quiet, "quiet", "q", false, "show errors only")
	fs.BoolVarP(&f.verbose, "verbose", "v", false, "show notes too")
	fs.BoolVar(&f.noColor, "no-color", false, "no colours")
	addRecursive(fs)
	completeWords(cmd)
	completeOutput(cmd, false, checkFormats()...)
	return cmd
}

func checkFormats() []string {
	return []string{"text", "wide", "json", "sarif", "junit", "markdown", "github", "html"}
}

func severities() []string { return []string{"error", "warning", "note"} }

func runCheck(cmd *cobra.Command, args []string, f checkFlags) error {
	if _, err := oneOf("-o", f.output, checkFormats()...); err != nil {
		return err
	}
	if _, err := oneOf("--fail-on", f.failOn, severities()...); err != nil {
		return err
	}
	run := checkRun{options: check.Options{Schemas: map[cel.Release]*schema.Set{}, Sizes: check.SizeOf(f.sizes)}}
	for _, part := range f.only {
		p, err := oneOf("--only", part, check.Types, check.Costs, check.Lint)
		if err != nil {
			return err
		}
		run.options.Parts = append(run.options.Parts, p)
	}
	choices, err := f.perRelease(run.options.Schemas)
	if err != nil {
		return err
	}
	if err := run.read(cmd.InOrStdin(), slices.Concat(args, f.files), f.kustomize); err != nil {
		return err
	}
	run.compile(choices)
	convert := convertFlags{quiet: true, verbose: f.verbose, noColor: f.noColor}
	if f.verbose {
		convert.quiet = false
	}
	if err := convert.printDiagnostics(cmd.ErrOrStderr(), run.found, run.sources, cmd.Root().DisplayName()); err != nil {
		return runtimeError(err)
	}
	if len(run.objects) == 0 && (!f.empty || run.found.HasErrors()) {
		if run.found.HasErrors() {
			return &exit{code: exitUsage}
		}
		return &exit{exitUsage, fmt.Errorf("there is no admission policy in %s", strings.Join(args, ", "))}
	}
	result := run.report()
	if err := f.write(cmd, result, &run); err != nil {
		return runtimeError(err)
	}
	switch {
	case run.found.HasErrors():
		return &exit{code: exitPartly}
	case result.Totals.AtLeast(f.least()) > 0:
		return &exit{code: exitFindings}
	}
	return nil
}

// perRelease are the choices for each release, the oldest first, and its types.
func (f checkFlags) perRelease(schemas map[cel.Release]*schema.Set) ([]choices, error) {
	var out []choices
	for _, text := range f.releases {
		f.release = text
		c, err := f.choices()
		if err != nil {
			return nil, err
		}
		if schemas[c.translate.Release] == nil {
			schemas[c.translate.Release] = c.translate.Schemas
			out = append(out, c)
		}
	}
	slices.SortFunc(out, func(a, b choices) int { return a.translate.Release.Compare(b.translate.Release) })
	return out, nil
}

// A checkRun is one run of check.
type checkRun struct {
	sources []source
	found   diag.List // what reading and converting said
	objects []*check.Object
	options check.Options
	newest  *compilation // of the policies that were converted; nil where there are none
}

func (run *checkRun) read(stdin io.Reader, paths []string, folder string) error {
	if len(paths) == 0 && folder == "" {
		return fmt.Errorf("name files or folders to check, or - for standard input")
	}
	sources, found, err := readInput(paths, stdin)
	if err != nil {
		return &exit{exitUsage, err}
	}
	if folder != "" {
		rendered, err := kustomize(folder)
		if err != nil {
			return &exit{exitUsage, err}
		}
		sources = append(sources, rendered)
	}
	run.sources, run.found = sources, found
	for _, s := range sources {
		if !check.MayBe(s.data) {
			continue
		}
		objects, ds := check.Written(s.name, s.data)
		run.objects, run.found = append(run.objects, objects...), append(run.found, ds...)
	}
	return nil
}

// compile converts the Kyverno-style policies for each release.
func (run *checkRun) compile(releases []choices) {
	if !slices.ContainsFunc(run.sources, func(s source) bool { return bytes.Contains(s.data, []byte("kyverno.io")) || !check.MayBe(s.data) }) {
		return
	}
	var made []*check.Object
	for _, c := range releases {
		done := compileSources(run.sources, c)
		run.found = append(run.found, done.found...)
		run.newest = done
		made = append(made, check.Made(done.objects, c.translate.Release)...)
	}
	run.objects = append(run.objects, check.Merge(made)...)
	run.found = run.found.Sort()
}

// report fills the values that are rendered.
func (run *checkRun) report() report.Check {
	var objects []report.CheckedObject
	for _, r := range check.Objects(run.objects, run.options) {
		o := report.CheckedObject{Kind: r.Object.Kind(), Name: r.Object.Name(), File: r.Object.Pos.File, Line: r.Object.Pos.Line, Generated: r.Object.Generated()}
		for _, release := range r.Releases {
			o.Releases = append(o.Releases, release.String())
		}
		for _, w := range r.TypeChecking {
			o.TypeChecking = append(o.TypeChecking, report.PredictedWarning{FieldRef: w.Field, Warning: w.Warning})
		}
		for _, k := range r.Cost {
			o.Cost = append(o.Cost, report.ExpressionCost{Field: k.Field, Estimate: k.Estimate, Measured: k.Measured, Limit: k.Limit, Safe: k.SafeUpTo()})
		}
		for _, f := range r.Findings {
			o.Findings = append(o.Findings, findingRow(f))
		}
		objects = append(objects, o)
	}
	return report.NewCheck(objects)
}

func findingRow(f check.Finding) report.Finding {
	row := report.Finding{
		Code: f.Code, Severity: f.Severity, Field: f.Field, File: f.File, Line: f.Line, Column: f.Pos.Col, Message: f.Message,
		Known: f.Known, Expression: f.Expression, ExpressionLine: f.ExprLine, ExpressionColumn: f.ExprCol,
	}
	if f.Release != 0 {
		row.Release = f.Release.String()
	}
	return row
}

func (f checkFlags) write(cmd *cobra.Command, c report.Check, run *checkRun) error {
	out := cmd.OutOrStdout()
	switch f.output {
	case "json":
		return c.WriteJSON(out)
	case "sarif", "github":
		return writeAlerts(out, f.output, c)
	case "junit":
		return c.WriteJUnit(out, f.least())
	case "markdown":
		return c.WriteMarkdown(out)
	case "html":
		return run.page(c).WriteHTML(out)
	}
	convert := convertFlags{quiet: f.quiet, verbose: f.verbose, noColor: f.noColor}
	return c.WriteText(inColour(out, f.noColor), report.CheckText{
		Text: convert.diagnosticText(out, run.sources, cmd.Root().DisplayName()), Detail: convert.detail(), Cost: f.output == "wide",
	})
}

// least is the least grave severity that makes a run fail.
func (f checkFlags) least() diag.Severity { return diag.Severity(slices.Index(severities(), f.failOn)) }

func (run *checkRun) page(c report.Check) report.Page {
	page := report.Page{Title: "kvap check", Check: &c}
	if run.newest != nil && len(run.newest.policies) > 0 {
		conversion := run.newest.report()
		page.Conversion, page.Pairs = &conversion, run.newest.pairs(run.sources)
	}
	return page
}
