package main

import (
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/check"
	"github.com/kvap/kvap/cmd/kvap/internal/acceptance"
	"github.com/kvap/kvap/cmd/kvap/internal/checking"
	"github.com/kvap/kvap/cmd/kvap/internal/convert"
	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/internal/cluster"
	"github.com/kvap/kvap/internal/command"
	"github.com/kvap/kvap/internal/exit"
	"github.com/kvap/kvap/internal/input"
	"github.com/kvap/kvap/report"
	"github.com/kvap/kvap/report/doc"
	"github.com/kvap/kvap/schema"
)

// checkFlags are the flags of check as the user gave them.
type checkFlags struct {
	sourceFlags
	output    string
	failOn    string
	releases  []string
	sizes     map[string]int
	only      []string
	empty     bool
	ignore    []string
	config    string
	param     []string
	cluster   bool
	connectTo clusterFlags
	convert.Flags

	viewFlags
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

A finding can be accepted: by --ignore, by the annotation or comment kvap.dev/ignore with a
reason, or in the file .kvap.yaml, which is looked for in the folder of the first PATH and
above it. It has defaults of these flags too. Accepted findings are counted by themselves,
and -v lists them.

With --cluster the release and the types of custom kinds are those of a cluster, and
where there is no PATH so are the policies. Nothing is written to it.

Exit codes: 0 clean, 1 findings as grave as --fail-on says, 2 usage or unreadable
input, 3 a runtime error, 4 some of the input was left out.`,
		Example: `  kvap check policies/
  kvap check vap.yaml --kubernetes-version 1.30 --kubernetes-version 1.36
  kvap check policies/ -o json --fail-on warning
  kvap check --cluster                # what is in the cluster
  kvap check --cluster policies/      # files, for the kinds of the cluster`,
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		config, err := f.configure(cmd, args)
		if err != nil {
			return err
		}
		return runCheck(cmd, args, f, config)
	}
	fs := command.InOrder(cmd)
	f.sourceFlags.add(fs, "a file or folder to read, as if it were a PATH", "a kustomize folder to render and read")
	command.AddChoice(fs, &f.output, "output", "text", "output format: text, wide, json, sarif, junit, markdown, github or html", "text", "wide", "json", "sarif", "junit", "markdown", "github", "html")
	command.AddChoice(fs, &f.failOn, "fail-on", "error", "what makes the exit code 1: error, warning or note", severities()...)
	fs.StringSliceVar(&f.releases, "kubernetes-version", []string{cel.Default.String()}, "a Kubernetes release to check for; may be given several times")
	fs.StringSliceVar(&f.only, "only", nil, "what to look at: types, cost or lint, to which belongs what converting says; all of them by default")
	fs.StringToIntVar(&f.sizes, "size", nil, "how large a field is assumed to be, by its name or path: containers=50,object.metadata.labels=20")
	fs.BoolVar(&f.empty, "allow-empty", false, "it is no error where there is nothing to check, and files without policies are passed over")
	fs.StringSliceVar(&f.ignore, "ignore", nil, "codes of findings that are accepted, as KV413")
	fs.StringVar(&f.config, "config", "", "the configuration file, or none; by default the .kvap.yaml that is nearest to the first PATH")
	fs.StringSliceVar(&f.param, "param", nil, "files of ConfigMaps and other params, with which cost is measured")
	addSharedChoices(fs, &f.Flags)
	addMutations(fs, &f.Flags)
	fs.BoolVar(&f.cluster, "cluster", false, "take the release and the types from a cluster, and the policies where there is no PATH")
	f.connectTo.addConnection(fs)
	f.viewFlags.add(fs, "no progress, and errors only", "show notes too")
	command.AddRecursive(fs)
	return cmd
}

func severities() []string { return []string{"error", "warning", "note"} }

func runCheck(cmd *cobra.Command, args []string, f checkFlags, config *acceptance.Configuration) error {
	defer letGarbageBe(200, 0)()
	run, err := f.run(cmd)
	if err != nil {
		return err
	}
	paths := slices.Concat(args, f.files)
	if len(paths) == 0 && f.kustomize == "" && !f.cluster {
		for _, p := range config.Paths {
			paths = append(paths, config.Path(p))
		}
	}
	if err := f.read(cmd, run, paths); err != nil {
		return err
	}
	for i := range run.Sources {
		run.Sources[i].Found = run.Sources[i].Found || f.empty
	}
	if f.cluster {
		if err := f.readCluster(cmd, run); err != nil {
			return err
		}
	}
	if err := f.accept(run, config); err != nil {
		return err
	}
	if run.Options.Params, err = f.params(cmd); err != nil {
		return err
	}
	choices, err := f.perRelease(run)
	if err != nil {
		return err
	}
	progress := newProgress(cmd.ErrOrStderr(), f.quiet)
	progress.during(fmt.Sprintf("converting %s", doc.Count(len(run.Sources), "file", "files")), func() {
		run.Compile(cmd.Context(), choices)
	})
	if err := f.sizesAreOfFields(run); err != nil {
		return err
	}
	var result report.Check
	progress.during(fmt.Sprintf("checking %s", doc.Count(len(run.Objects), "object", "objects")), func() { result = run.Report() })
	progress.clear()
	behind := run.Behind(cmd.Root().DisplayName())
	nothing := len(run.Objects)+len(run.Unread())+len(run.Signers()) == 0
	if nothing && !run.Refused() && !result.LeavesOut() && !f.empty && !f.cluster && !run.NeedsNone() {
		if behind != "" {
			behind = ": " + behind
		}
		return exit.Usage(fmt.Errorf("there is no admission policy in %s%s", input.Names(paths, f.kustomize), behind))
	}
	if behind != "" && !f.quiet {
		fmt.Fprintln(cmd.ErrOrStderr(), behind)
	}
	if err := f.write(cmd, result, run); err != nil {
		return exit.Runtime(err)
	}
	if nothing && result.LeavesOut() {
		return exit.Usage(nil)
	}
	return f.verdict(run, result)
}

// sizesAreOfFields refuses a size of what is no field: it would change nothing.
func (f checkFlags) sizesAreOfFields(run *checking.Run) error {
	if len(f.sizes) == 0 {
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(f.sizes)) {
		if f.sizes[name] < 1 {
			return exit.Usage(fmt.Errorf("--size %s=%d: a size is a number from 1 on", name, f.sizes[name]))
		}
	}
	name, meant := check.UnknownSize(slices.Sorted(maps.Keys(f.sizes)), run.Objects, run.Options.Schemas)
	if name == "" {
		return nil
	}
	return exit.Usage(fmt.Errorf("--size %s: no type has such a field, and no expression reads it%s", name, didYouMean(meant)))
}

// configure takes the defaults of flags from the configuration file.
func (f *checkFlags) configure(cmd *cobra.Command, args []string) (*acceptance.Configuration, error) {
	config, err := f.configuration(args)
	if err != nil {
		return nil, exit.Usage(err)
	}
	for _, name := range slices.Sorted(maps.Keys(config.Check)) {
		flag := cmd.Flags().Lookup(name)
		if flag == nil || isOfOneRun(name) {
			return nil, exit.Usage(fmt.Errorf("%s: check.%s is not a flag that a configuration file sets%s", config.At(name), name, didYouMean(diag.Nearest(name, settable(cmd)))))
		}
		if flag.Changed {
			continue
		}
		if hasFraction(config.Check[name]) {
			return nil, exit.Usage(fmt.Errorf("%s: check.%s: YAML reads this as the number %v; write it in quotes", config.At(name), name, config.Check[name]))
		}
		for _, value := range valuesOf(config.Check[name]) {
			if name == "crds" || name == "param" {
				value = config.Path(value)
			}
			if err := cmd.Flags().Set(name, value); err != nil {
				return nil, exit.Usage(fmt.Errorf("%s: check.%s: %w", config.At(name), name, err))
			}
		}
	}
	return config, command.CheckChoices(cmd, nil)
}

// isOfOneRun tells of the flags of check that say what one run is about.
func isOfOneRun(flag string) bool {
	return slices.Contains([]string{"cluster", "kubeconfig", "context", "user", "as", "as-group", "request-timeout", "filename", "kustomize", "config", "ignore", "help"}, flag)
}

// settable are the flags that a configuration file sets.
func settable(cmd *cobra.Command) (out []string) {
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if !isOfOneRun(f.Name) {
			out = append(out, f.Name)
		}
	})
	return out
}

// didYouMean proposes a word; "" for none.
func didYouMean(word string) string {
	if word == "" {
		return ""
	}
	return "; did you mean " + word + "?"
}

// configuration is the file that is named, or the nearest one.
func (f *checkFlags) configuration(args []string) (*acceptance.Configuration, error) {
	switch f.config {
	case "none":
		return &acceptance.Configuration{}, nil
	case "":
		near := "."
		for _, path := range slices.Concat(args, f.files, []string{f.kustomize}) {
			if path != "-" && path != "" {
				near = path
				break
			}
		}
		return acceptance.Find(near)
	}
	return acceptance.Read(f.config)
}

// hasFraction reports whether a value, or one of a list, is a number with a fraction, which no flag
// has: it is a release, of which YAML makes 1.3 where 1.30 is written.
func hasFraction(value any) bool {
	if list, ok := value.([]any); ok {
		return slices.ContainsFunc(list, hasFraction)
	}
	number, ok := value.(float64)
	return ok && number != math.Trunc(number)
}

// valuesOf are the values of a flag as somebody would type them.
func valuesOf(value any) (out []string) {
	switch v := value.(type) {
	case []any:
		for _, item := range v {
			out = append(out, fmt.Sprint(item))
		}
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			out = append(out, fmt.Sprintf("%s=%v", key, v[key]))
		}
	default:
		out = append(out, fmt.Sprint(v))
	}
	return out
}

// accept has the run accept what the flags, the configuration file and the sources say.
func (f checkFlags) accept(run *checking.Run, config *acceptance.Configuration) error {
	var codes []diag.Code
	for _, word := range f.ignore {
		code, ok := diag.ParseCode(word)
		if !ok {
			return fmt.Errorf("--ignore %s: there is no such code; kvap explain lists all", word)
		}
		codes = append(codes, code)
	}
	inSources, found := acceptance.In(run.Sources)
	run.Found = append(run.Found, found...)
	all := slices.Concat(inSources, config.Accepted(), acceptance.Everywhere(codes, "--ignore"))
	run.Accept = func(f report.Finding, object diag.Pos) string { return acceptance.Reason(all, f.Code, f.Pos(), object) }
	return nil
}

// params are the objects of --param.
func (f checkFlags) params(cmd *cobra.Command) (out []map[string]any, err error) {
	objects, _, found, err := input.Manifests("--param", f.param, cmd.InOrStdin())
	if err != nil {
		return nil, err
	}
	if err := found.Err(); err != nil {
		return nil, exit.Usage(fmt.Errorf("--param: %w", err))
	}
	for _, o := range objects {
		out = append(out, o.Value)
	}
	return out, nil
}

// verdict is the exit code: what could not be read weighs most.
func (f checkFlags) verdict(run *checking.Run, result report.Check) error {
	switch {
	case len(run.Left) > 0:
		return run.LeftOut.Err("the check")
	case result.LeavesOut():
		return exit.Partly(nil)
	case result.Totals.AtLeast(f.least()) > 0:
		return exit.Findings(nil)
	case len(run.Unread()) > 0:
		return exit.Partly(nil)
	}
	return nil
}

// run begins a run, where the flags are right.
func (f checkFlags) run(cmd *cobra.Command) (*checking.Run, error) {
	for _, flag := range []string{"kubeconfig", "context", "user", "as", "as-group", "request-timeout"} {
		if cmd.Flags().Changed(flag) && !f.cluster {
			return nil, fmt.Errorf("--%s is for --cluster, which is not asked for", flag)
		}
	}
	run := &checking.Run{Options: check.Options{Schemas: map[cel.Release]*schema.Set{}, Sizes: check.SizeOf(f.sizes)}}
	for _, part := range f.only {
		p, err := input.OneOf("--only", part, check.Types, check.Costs, check.Lint)
		if err != nil {
			return nil, err
		}
		run.Options.Parts = append(run.Options.Parts, p)
	}
	return run, nil
}

// perRelease are the choices for each release, the oldest first, and its types.
func (f checkFlags) perRelease(run *checking.Run) ([]convert.Choices, error) {
	schemas := run.Options.Schemas
	var out []convert.Choices
	for _, text := range f.releases {
		f.Release = text
		c, err := f.Choices()
		if err != nil {
			return nil, err
		}
		if schemas[c.Translate.Release] == nil {
			if c.Translate.Schemas, err = run.WithServed(c.Translate.Schemas); err != nil {
				return nil, exit.Runtime(err)
			}
			schemas[c.Translate.Release] = c.Translate.Schemas
			out = append(out, c)
		}
	}
	slices.SortFunc(out, func(a, b convert.Choices) int { return a.Translate.Release.Compare(b.Translate.Release) })
	return out, nil
}

// read reads the sources; without any, a cluster is asked.
func (f checkFlags) read(cmd *cobra.Command, run *checking.Run, paths []string) (err error) {
	if len(paths) > 0 || f.kustomize != "" {
		run.Sources, run.Found, err = input.Sources(paths, f.kustomize, cmd.InOrStdin())
	} else if !f.cluster {
		err = fmt.Errorf("name files or folders to check, - for standard input, or --cluster for what a cluster has; a file .kvap.yaml may name them too")
	}
	return err
}

// readCluster reads the policies where there are no others, and the custom kinds.
func (f *checkFlags) readCluster(cmd *cobra.Command, run *checking.Run) error {
	c, err := f.connectTo.connect()
	if err != nil {
		return err
	}
	if err := run.ReadCluster(cmd.Context(), c); err != nil {
		return exit.Runtime(err)
	}
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

func (f checkFlags) write(cmd *cobra.Command, c report.Check, run *checking.Run) error {
	view := report.CheckView{Detail: f.detail(), Fails: f.least(), Cost: f.output == "wide"}
	if f.output == "html" {
		view.Conversion, view.Pairs = run.Converted()
	}
	return f.writeDocument(cmd, cmd.OutOrStdout(), f.output, c.Document(view), run.Sources)
}

// least is the least grave severity that makes a run fail.
func (f checkFlags) least() diag.Severity { return diag.Severity(slices.Index(severities(), f.failOn)) }
