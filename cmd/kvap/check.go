package main

import (
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"

	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/check"
	"github.com/kvap/kvap/compile"
	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/internal/cluster"
	"github.com/kvap/kvap/internal/convert"
	"github.com/kvap/kvap/internal/exit"
	"github.com/kvap/kvap/internal/input"
	"github.com/kvap/kvap/policy"
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
	cluster   bool
	connectTo clusterFlags
	convert.Flags

	quiet, verbose, noColor bool
}

func newCheck() *cobra.Command {
	var f checkFlags
	cmd := &cobra.Command{
		Use:   "check [PATH...]",
		Short: "Check types, cost and traps of admission policies, before a cluster sees them",
		Long: `Check reads files and folders, with - for standard input, and looks at every
ValidatingAdmissionPolicy, MutatingAdmissionPolicy and binding: those that somebody
wrote, and those that Kyverno-style policies among the input are converted to.

Every expression is checked against the types that values really have, for all kinds
that the policy matches and for each release asked for. What kube-controller-manager
will write into the policy's status is predicted, and its false alarms are told.

With --cluster the release and the types of custom kinds are those of a cluster, and
where there is no PATH so are the policies. Nothing is written to it.

Exit codes: 0 clean, 1 findings as grave as --fail-on says, 2 usage or unreadable
input, 3 a runtime error, 4 some of the input was left out.`,
		Example: `  kvap check policies/
  kvap check vap.yaml --kubernetes-version 1.30 --kubernetes-version 1.36
  kvap check policies/ -o json --fail-on warning
  kvap check --cluster                # what is in the cluster
  kvap check --cluster policies/      # files, for the kinds of the cluster`,
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
	addSharedChoices(fs, &f.Flags)
	fs.BoolVar(&f.cluster, "cluster", false, "take the release and the types from a cluster, and the policies where there is no PATH")
	f.connectTo.addConnection(fs)
	fs.BoolVarP(&f.quiet, "quiet", "q", false, "no progress, and errors only")
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
	defer letGarbageBe(200, 0)()
	run, err := f.run(cmd)
	if err != nil {
		return err
	}
	paths := slices.Concat(args, f.files)
	if err := run.read(cmd.InOrStdin(), paths, f.kustomize); err != nil {
		return err
	}
	if f.cluster {
		if err := run.readCluster(cmd, &f); err != nil {
			return err
		}
	}
	choices, err := f.perRelease(run)
	if err != nil {
		return err
	}
	progress := newProgress(cmd.ErrOrStderr(), f.quiet)
	progress.during(fmt.Sprintf("converting %s", report.Count(len(run.sources), "file", "files")), func() {
		run.parse()
		run.compile(choices)
	})
	progress.clear()
	words := convertFlags{quiet: !f.verbose, verbose: f.verbose, noColor: f.noColor}
	if err := words.printDiagnostics(cmd.ErrOrStderr(), run.found, run.sources, cmd.Root().DisplayName()); err != nil {
		return exit.Runtime(err)
	}
	behind := run.behind(cmd.Root().DisplayName())
	if len(run.objects)+len(run.unread()) == 0 && (!f.empty && !f.cluster && !run.needsNone() || run.found.HasErrors()) {
		if run.found.HasErrors() {
			return exit.Usage(nil)
		}
		if behind != "" {
			behind = ": " + behind
		}
		return exit.Usage(fmt.Errorf("there is no admission policy in %s%s", input.Names(paths, f.kustomize), behind))
	}
	if behind != "" && !f.quiet {
		fmt.Fprintln(cmd.ErrOrStderr(), behind)
	}
	var result report.Check
	progress.during(fmt.Sprintf("checking %s", report.Count(len(run.objects), "object", "objects")), func() { result = run.report() })
	progress.clear()
	if err := f.write(cmd, result, run); err != nil {
		return exit.Runtime(err)
	}
	return f.verdict(run, result)
}

// verdict is the exit code: what could not be read weighs most.
func (f checkFlags) verdict(run *checkRun, result report.Check) error {
	switch {
	case len(run.Left) > 0:
		return run.LeftOut.Err("the check")
	case run.found.HasErrors():
		return exit.Partly(nil)
	case result.Totals.AtLeast(f.least()) > 0:
		return exit.Findings(nil)
	case len(run.unread()) > 0:
		return exit.Partly(nil)
	}
	return nil
}

// run begins a run, where the flags are right.
func (f checkFlags) run(cmd *cobra.Command) (*checkRun, error) {
	if _, err := input.OneOf("-o", f.output, checkFormats()...); err != nil {
		return nil, err
	}
	if _, err := input.OneOf("--fail-on", f.failOn, severities()...); err != nil {
		return nil, err
	}
	for _, flag := range []string{"kubeconfig", "context", "timeout"} {
		if cmd.Flags().Changed(flag) && !f.cluster {
			return nil, fmt.Errorf("--%s is for --cluster, which is not asked for", flag)
		}
	}
	run := &checkRun{options: check.Options{Schemas: map[cel.Release]*schema.Set{}, Sizes: check.SizeOf(f.sizes)}, fromCluster: f.cluster}
	for _, part := range f.only {
		p, err := input.OneOf("--only", part, check.Types, check.Costs, check.Lint)
		if err != nil {
			return nil, err
		}
		run.options.Parts = append(run.options.Parts, p)
	}
	return run, f.Check()
}

// perRelease are the choices for each release, the oldest first, and its types.
func (f checkFlags) perRelease(run *checkRun) ([]convert.Choices, error) {
	schemas := run.options.Schemas
	var out []convert.Choices
	for _, text := range f.releases {
		f.Release = text
		c, err := f.Choices()
		if err != nil {
			return nil, err
		}
		if schemas[c.Translate.Release] == nil {
			if c.Translate.Schemas, err = withServed(c.Translate.Schemas, run.served); err != nil {
				return nil, exit.Runtime(err)
			}
			schemas[c.Translate.Release] = c.Translate.Schemas
			out = append(out, c)
		}
	}
	slices.SortFunc(out, func(a, b convert.Choices) int { return a.Translate.Release.Compare(b.Translate.Release) })
	return out, nil
}

// A checkRun is one run of check.
type checkRun struct {
	sources []input.Source
	found   diag.List // what reading and converting said
	objects []*check.Object
	options check.Options
	newest  *convert.Compilation // of the policies that were converted; nil where there are none
	// fromCluster tells that what the paths do not say is a cluster's to say: served
	// are its custom kinds.
	fromCluster bool
	served      []servedKinds
	cluster.LeftOut
}

func (run *checkRun) read(stdin io.Reader, paths []string, folder string) (err error) {
	if len(paths) == 0 && folder == "" {
		if run.fromCluster {
			return nil
		}
		return fmt.Errorf("name files or folders to check, - for standard input, or --cluster for what a cluster has")
	}
	run.sources, run.found, err = input.Sources(paths, folder, stdin)
	return err
}

// readCluster reads the policies where there are no others, and the custom kinds.
func (run *checkRun) readCluster(cmd *cobra.Command, f *checkFlags) error {
	c, err := f.connectTo.connect()
	if err != nil {
		return err
	}
	r := checkReader{Connection: c}
	if len(run.sources) == 0 {
		if run.sources, err = r.policies(cmd.Context()); err != nil {
			return exit.Runtime(err)
		}
	}
	if run.served, err = r.readServed(cmd.Context(), run.sources); err != nil {
		return exit.Runtime(err)
	}
	run.LeftOut = r.LeftOut
	if cmd.Flags().Changed("kubernetes-version") {
		return nil
	}
	release, same := cluster.Nearest(c)
	f.releases = []string{release.String()}
	if !same && !f.quiet {
		fmt.Fprintf(cmd.ErrOrStderr(), "warning: the cluster is of release %s, which kvap does not know; it is checked as %s\n", c.Release, release)
	}
	return nil
}

// parse finds the native objects among the sources.
func (run *checkRun) parse() {
	for _, s := range run.sources {
		if !check.MayBe(s.Data) {
			continue
		}
		objects, ds := check.Written(s.Name, s.Data)
		run.objects, run.found = append(run.objects, objects...), append(run.found, ds...)
	}
}

// compile converts the Kyverno-style policies for each release.
func (run *checkRun) compile(releases []convert.Choices) {
	if !slices.ContainsFunc(run.sources, func(s input.Source) bool { return policy.MayHold(s.Data) || !check.MayBe(s.Data) }) {
		return
	}
	var made []*check.Object
	for _, c := range releases {
		done := convert.Compile(run.sources, c)
		run.found = append(run.found, done.Found...)
		run.newest = done
		made = append(made, check.Made(done.Objects, c.Translate.Release)...)
	}
	run.objects = append(run.objects, check.Merge(made)...)
	// what is not read is a finding of its own, and no file of which an object is checked is passed over
	checked := map[string]bool{}
	for _, o := range run.objects {
		checked[o.Pos.File] = true
	}
	run.found = slices.DeleteFunc(run.found, func(d diag.Diagnostic) bool {
		return d.Code == diag.UnreadKind || d.Code == diag.OtherEngine || d.Code == diag.OtherKind && d.Line == 0 && checked[d.File]
	})
	run.found = run.found.Sort()
}

// unread are the policies of kinds that are not read.
func (run *checkRun) unread() []*policy.Unread {
	if run.newest == nil {
		return nil
	}
	return run.newest.Unread
}

// needsNone tells that rules are native, if only such that need no object.
func (run *checkRun) needsNone() bool {
	return run.newest != nil && slices.ContainsFunc(run.newest.Rules, func(r *compile.Rule) bool { return report.Target(r.Target) == report.Native })
}

// behind says how many rules are not looked at, for they have no native form; "" for
// none. command is what the program is called.
func (run *checkRun) behind(command string) string {
	if run.newest == nil {
		return ""
	}
	n := 0
	for _, r := range run.newest.Rules {
		if report.Target(r.Target) != report.Native {
			n++
		}
	}
	switch n {
	case 0:
		return ""
	case 1:
		return "1 rule has no native form and is not checked; " + command + " convert says why"
	}
	return fmt.Sprintf("%d rules have no native form and are not checked; %s convert says why", n, command)
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
	for _, u := range run.unread() {
		objects = append(objects, report.CheckedObject{Kind: u.Kind, Name: u.Name, File: u.Pos.File, Line: u.Pos.Line, Findings: []report.Finding{
			{Code: u.Code, Severity: diag.Warning, File: u.Pos.File, Line: u.Pos.Line, Column: u.Pos.Col, Message: u.Reason},
		}})
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
		return report.WriteAlerts(out, f.output, c, run.found)
	case "junit":
		return c.WriteJUnit(out, f.least())
	case "markdown":
		return c.WriteMarkdown(out)
	case "html":
		return run.page(c).WriteHTML(out)
	}
	words := convertFlags{quiet: f.quiet, verbose: f.verbose, noColor: f.noColor}
	return c.WriteText(inColour(out, f.noColor), report.CheckText{
		Text: words.diagnosticText(out, run.sources, cmd.Root().DisplayName()), Detail: words.detail(), Cost: f.output == "wide",
	})
}

// least is the least grave severity that makes a run fail.
func (f checkFlags) least() diag.Severity { return diag.Severity(slices.Index(severities(), f.failOn)) }

func (run *checkRun) page(c report.Check) report.Page {
	page := report.Page{Title: "kvap check", Check: &c}
	if run.newest != nil && !run.newest.Empty() {
		conversion := run.newest.Report()
		page.Conversion, page.Pairs = &conversion, run.newest.Pairs(run.sources)
	}
	return page
}
